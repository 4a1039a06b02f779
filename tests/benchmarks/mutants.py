"""The lines that the guarantee and the user's work rest on, made wrong one by one: does a test notice?

python -m tests.benchmarks.mutants [--only TEXT]      how many of the mutants die, and which live

Each mutant is one line of the source in a copy of the tree; the tests that should notice run there, until one fails.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Mutant:
    """What is made wrong: a text of a file, what stands in its place, and the tests that should fail."""

    what: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


GUARANTEE = ("tests/smoothing/test_guarantee.py", "tests/smoothing/test_tails.py")
RADII = ("tests/plugins/rules", *GUARANTEE)
SAMPLING = ("tests/smoothing/test_sampling.py", "tests/smoothing/test_certify.py")
MUTANTS = (
    Mutant(
        "Clopper and Pearson at twice alpha", "smoothctl/smoothing/bounds.py",
        "successes, trials - successes + 1.0, alpha)", "successes, trials - successes + 1.0, 2 * alpha)",
        ("tests/smoothing/test_bounds.py",),
    ),
    Mutant(
        "a bound that is not lowered until it is proved", "smoothctl/smoothing/tails.py",
        "while bound > 0.0 and tail(k, n, bound) > alpha:", "while False:", GUARANTEE,
    ),
    Mutant(
        "total variation is not subtracted", "smoothctl/smoothing/arithmetic.py",
        "proved = math.nextafter(p_lower - distance, -1.0) if distance else p_lower", "proved = p_lower",
        ("tests/smoothing/test_arithmetic.py", *GUARANTEE),
    ),
    Mutant(
        "multi chooses between its bounds by estimation votes", "smoothctl/smoothing/radius_bounds.py",
        "split(top, alike, selection)[1] > binary(top, alike, selection)[1]",
        "split(top, votes, selection)[1] > binary(top, votes, selection)[1]",
        ("tests/smoothing/test_radius_bounds.py", *GUARANTEE),
    ),
    Mutant(
        "predict at twice alpha", "smoothctl/smoothing/predict.py",
        "top if p_value <= alpha else ABSTAIN", "top if p_value <= 2 * alpha else ABSTAIN",
        ("tests/smoothing/test_predict.py", *GUARANTEE),
    ),
    Mutant(
        "selection and estimation share their noise", "smoothctl/smoothing/sampling.py",
        "Draws(self.seed, task.index, stream, number, device", "Draws(self.seed, task.index, 0, number, device",
        SAMPLING,
    ),
    Mutant(
        "every image has the same noise", "smoothctl/smoothing/sampling.py",
        "Draws(self.seed, task.index, stream, number, device", "Draws(self.seed, 0, stream, number, device", SAMPLING,
    ),
    Mutant(
        "each interim analysis at full alpha", "plugins/rules/group_sequential.py",
        "** SPENDING_POWER - spent", "** SPENDING_POWER", RADII,
    ),
    Mutant(
        "interim analyses spend twice alpha", "plugins/rules/group_sequential.py",
        "allowed = alpha * ROUNDING", "allowed = 2 * alpha * ROUNDING", RADII,
    ),
    Mutant(
        "the probe is skipped", "smoothctl/smoothing/sampling.py",
        "if not self._probed:", "if False:", ("tests/smoothing/test_probe.py", "tests/cli/test_certify.py"),
    ),
    Mutant(
        "skipping what is right", "smoothctl/smoothing/procedure.py",
        "if top != label:", "if top == label:", ("tests/plugins/rules/test_rules.py",),
    ),
    Mutant(
        "a state may hold code", "smoothctl/records/run_directory.py",
        'torch.load(self.state, map_location="cpu", weights_only=True)',
        'torch.load(self.state, map_location="cpu", weights_only=False)',
        ("tests/records", "tests/cli/test_safety.py"),
    ),
    Mutant(
        "a lock is released before its file is removed", "smoothctl/base/files.py",
        "lock_path.unlink(missing_ok=True)\n        lock.release()\n\n\n",
        "lock.release()\n        lock_path.unlink(missing_ok=True)\n\n\n", ("tests/base/test_files.py",),
    ),
    Mutant(
        "failed rows count as done", "smoothctl/records/writer.py",
        'if line.endswith("\\tok")}', "if line}", ("tests/records", "tests/cli/test_certify.py"),
    ),
    Mutant(
        "a radius counts where the class is wrong", "smoothctl/reporting/frames.py",
        "np.where(self.correct & ~np.isnan(self.radius)", "np.where(~np.isnan(self.radius)", ("tests/reporting",),
    ),
)  # fmt: skip


def survives(mutant: Mutant, folder: Path) -> bool:
    """Whether the tests pass although a line is wrong. Raises AssertionError if the line is not there exactly once."""
    path = folder / mutant.file
    before = path.read_text(encoding="utf-8")
    assert before.count(mutant.old) == 1, f"{mutant.file} has {before.count(mutant.old)} times: {mutant.old}"
    path.write_text(before.replace(mutant.old, mutant.new), encoding="utf-8")
    try:
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *mutant.tests]
        done = subprocess.run(
            command, cwd=folder, env={**os.environ, "PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode in (0, 1), done.stdout + done.stderr
        return done.returncode == 0
    finally:
        path.write_text(before, encoding="utf-8")


def copy_tree(folder: Path) -> None:
    """The files of the tree, with the built-in plugins where their package is looked for."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.splitlines():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes((ROOT / name).read_bytes())
    (folder / "smoothctl_plugins").symlink_to(folder / "plugins")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="those whose description holds this text")
    only = parser.parse_args().only
    chosen = [mutant for mutant in MUTANTS if only in mutant.what]
    alive = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "tree"
        copy_tree(folder)
        for mutant in chosen:
            lives = survives(mutant, folder)
            alive += [mutant.what] if lives else []
            print(f"{'LIVES' if lives else 'dies'}: {mutant.what}", flush=True)
    print(f"{len(chosen) - len(alive)} of {len(chosen)} mutants die")
    sys.exit(bool(alive))


if __name__ == "__main__":
    main()
