"""Attacks within and beyond certified radii, as users type them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import smoothctl
from smoothctl.records.attacks import read_attack_log
from smoothctl.reporting.measures.attacks import least_success, successes
from tests.cli.conftest import Typed

SMALL = "--multiples 0.5,1,8 --steps 4 --samples 8 --n 100"


@pytest.fixture(scope="module")
def certified_run(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The trained run, with a certification log of a few images. Not to be written to."""
    from smoothctl.cli import run

    made = Path(shutil.copytree(trained, tmp_path_factory.mktemp("certified") / "small"))
    assert run(["certify", str(made), "--n", "200", "--every", "15"]) == 0
    return made


@pytest.fixture
def certified(certified_run: Path, tmp_path: Path) -> Path:
    """A copy that a test may write to."""
    return Path(shutil.copytree(certified_run, tmp_path / "small"))


def test_attacks_fail_within_the_radius_and_succeed_far_beyond(certified: Path, typed: Typed) -> None:
    done = typed(f"attack {certified} {SMALL} --json")
    assert done.code == 0, done.err
    half, whole, far = done.json()["multiples"]
    assert half["count"] == whole["count"] == len(done.json()["images"]) > 3
    assert half["changed"] == whole["changed"] == 0
    assert far["changed"] > 0
    for image in done.json()["images"]:
        bounds = [multiple * image["radius"] for multiple in (0.5, 1, 8)]
        assert all(norm < bound for norm, bound in zip(image["norms"], bounds, strict=True))


def test_an_attack_resumes_and_comes_to_the_same_log(certified: Path, typed: Typed) -> None:
    log = certified / "certify.attack.tsv"
    assert typed(f"attack {certified} {SMALL}").code == 0
    without_time = [line.split("\t")[:7] for line in log.read_text().splitlines()]
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(lines[:3]) + lines[3][:10])
    done = typed(f"attack {certified} {SMALL}")
    assert done.code == 0
    assert "2 of" in done.err
    assert [line.split("\t")[:7] for line in log.read_text().splitlines()] == without_time
    assert "nothing to do" in typed(f"attack {certified} {SMALL}").err
    other = typed(f"attack {certified} {SMALL} --seed 1")
    assert (other.code, "seed" in other.err) == (2, True)


def test_python_gives_the_same_as_the_command_line(certified: Path, typed: Typed) -> None:
    out = certified / "python.tsv"
    log = smoothctl.attack(certified, multiples=(2,), steps=2, samples=4, n=50, max=2, out=out)
    assert typed(f"attack {certified} --multiples 2 --steps 2 --samples 4 --n 50 --max 2").code == 0
    assert read_attack_log(certified / "certify.attack.tsv").images == log.images
    assert len(log.images) == 2
    assert log.passes == (2 * (2 * 4 + 50), 2 * 2 * 4)


def test_the_report_shows_attacks_beside_certificates(certified: Path, typed: Typed) -> None:
    assert typed(f"attack {certified} {SMALL}").code == 0
    plot = certified / "attacks.png"
    done = typed(f"report {certified} --radii 0,0.25 --plot attacks={plot}")
    assert done.code == 0, done.err
    assert "Attacks on" in done.out
    assert "empirical robust" in done.out
    assert plot.stat().st_size > 1000


def test_a_dry_run_writes_nothing(certified: Path, typed: Typed) -> None:
    done = typed(f"attack {certified} {SMALL} --dry-run")
    assert done.code == 0
    assert "backward passes" in done.out
    assert not (certified / "certify.attack.tsv").exists()


@pytest.mark.parametrize(
    ("flags", "words"),
    [("--multiples 0,1", "above 0"), ("--n 5", "n>=11"), ("--steps 0", "--steps"), ("--step-size 0", "--step-size")],
)
def test_bad_settings_are_one_line(certified: Path, typed: Typed, flags: str, words: str) -> None:
    done = typed(f"attack {certified} {flags}")
    assert (done.code, done.out) == (2, "")
    assert words in done.err


def test_without_certificates_it_says_how_to_make_them(run_copy: Path, typed: Typed) -> None:
    done = typed(f"attack {run_copy}")
    assert done.code == 2
    assert f"smoothctl certify {run_copy}" in done.err


def test_another_model_than_was_certified_is_refused(certified: Path, typed: Typed) -> None:
    other = certified.parent / "other"
    assert typed(f"train --arch lenet --sigma 0.25 --epochs 1 --seed 3 --out {other}").code == 0
    done = typed(f"attack {other} --certified {certified / 'certify.tsv'}")
    assert done.code == 2
    assert "another model" in done.err


def test_a_damaged_log_of_attacks_is_named(certified: Path, typed: Typed) -> None:
    assert typed(f"attack {certified} {SMALL}").code == 0
    log = certified / "certify.attack.tsv"
    log.write_text(log.read_text().replace("0.", "x.", 1))
    done = typed(f"report {certified}")
    assert "certify.attack.tsv" in done.err
    assert "Traceback" not in done.err


def test_figures_of_a_log_by_hand(tmp_path: Path) -> None:
    log = tmp_path / "certify.attack.tsv"
    header = "idx\tlabel\tradius\tnorms\tpredictions\tforward_passes\tbackward_passes\ttime\timage\tstatus"
    rows = ["0\t3\t0.5\t1.0 0.5\t4 3", "1\t2\t0.25\t0.5 0.25\t-1 2", "2\t7\t1.0\t2.0 1.0\t1 0"]
    log.write_text("\n".join([header, *(f"{row}\t10\t5\t0.1\t\tok" for row in rows)]) + "\n")
    about = '"format": 1, "planned": 3, "about": {"eligible": 3}'
    (tmp_path / "certify.attack.json").write_text(f'{{"settings": {{"multiples": [2, 1]}}, {about}}}')
    read = read_attack_log(log)
    inside, beyond = successes(read)
    assert (inside.multiple, inside.changed, inside.abstained) == (1.0, 1, 0)
    assert (beyond.multiple, beyond.changed, beyond.abstained) == (2.0, 2, 1)
    assert [least_success(image) for image in read.images] == [1.0, float("inf"), 1.0]
    assert read.passes == (30, 15)
