"""Nothing of a user's is lost or silently replaced, and damaged files get one line."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from smoothctl import UsageError, certify
from smoothctl.base.errors import SmoothctlError
from tests.cli.conftest import Typed

QUICK = "train --dataset digits --arch lenet --sigma 0.25 --epochs 2"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def refused(typed: Typed, line: str, folder: Path) -> str:
    """A command that is refused changes nothing; returns what it said."""
    before = contents(folder)
    done = typed(line)
    assert done.code in (1, 2), done.err
    assert "Traceback" not in done.err
    assert contents(folder) == before
    return done.err


def test_overwrite_keeps_what_is_not_of_the_run(typed: Typed, run_copy: Path) -> None:
    (run_copy / "notes.txt").write_text("mine")
    typed(f"certify {run_copy} --n 100 --max 1")
    assert typed(f"{QUICK} --seed 1 --out {run_copy} --overwrite").code == 0
    assert (run_copy / "notes.txt").read_text() == "mine"
    assert not (run_copy / "certify.tsv").exists()


def test_a_folder_with_settings_of_something_else_is_left_alone(typed: Typed, workplace: Path) -> None:
    (workplace / "d").mkdir()
    (workplace / "d" / "settings.json").write_text('{"mine": 1}')
    assert "not of a run" in refused(typed, f"{QUICK} --out d --overwrite", workplace / "d")


def test_a_finished_run_without_its_model_says_so(typed: Typed, run_copy: Path) -> None:
    (run_copy / "model.pt").unlink()
    assert "its model is gone" in refused(typed, f"{QUICK} --out {run_copy}", run_copy)


@pytest.mark.parametrize("content", ["", "junk\n", "[1]\n", '{"epoch": 0}\n'])
def test_damaged_lines_of_epochs_are_named(typed: Typed, run_copy: Path, content: str) -> None:
    (run_copy / "epochs.jsonl").write_text(content)
    done = typed(f"train --arch lenet --sigma 0.25 --epochs 2 --out {run_copy}")
    assert done.code == 1
    assert "epochs.jsonl" in done.err
    assert "Traceback" not in done.err


def test_a_kill_after_the_last_epoch_leaves_no_state_for_long(typed: Typed, run_copy: Path) -> None:
    (run_copy / "state.pt").write_bytes(b"left")
    assert typed(f"train --arch lenet --sigma 0.25 --epochs 2 --out {run_copy}").code == 0
    assert not (run_copy / "state.pt").exists()


def unfinish(run: Path) -> None:
    """Make a run look as if it had not come to its end."""
    settings = json.loads((run / "settings.json").read_text())
    (run / "settings.json").write_text(json.dumps({**settings, "finished": None}))


def test_a_model_whose_state_is_gone_is_not_trained_over(typed: Typed, run_copy: Path) -> None:
    unfinish(run_copy)
    message = refused(typed, f"{QUICK} --out {run_copy}", run_copy)
    assert "no state.pt to go on from" in message
    assert "--overwrite" in message


@pytest.mark.parametrize("content", ["junk", {"a": 1}, [1]])
def test_a_damaged_state_is_named(typed: Typed, run_copy: Path, content: object) -> None:
    unfinish(run_copy)
    if isinstance(content, str):
        (run_copy / "state.pt").write_text(content)
    else:
        torch.save(content, run_copy / "state.pt")
    assert "state.pt is damaged" in refused(typed, f"{QUICK} --out {run_copy}", run_copy)


def test_a_state_of_another_network_is_named(typed: Typed, run_copy: Path) -> None:
    unfinish(run_copy)
    state = {"network": {"other.weight": torch.zeros(3)}, "optimization": {}, "history": [{"epoch": 0, "seconds": 1.0}]}
    torch.save(state, run_copy / "state.pt")
    done = typed(f"train --arch lenet --sigma 0.25 --epochs 2 --out {run_copy}")
    assert done.code == 1
    assert "does not fit this network" in done.err
    assert "--overwrite" in done.err


@pytest.mark.parametrize("name", ["settings.tsv", "notes.tsv", "x.json", "model.pt", "log.txt"])
@pytest.mark.parametrize("flag", ["", "--overwrite"])
def test_a_log_replaces_no_other_file(typed: Typed, run_copy: Path, name: str, flag: str) -> None:
    (run_copy / "notes.json").write_text('{"mine": 1}')
    refused(typed, f"certify {run_copy} --n 100 --max 1 --out {run_copy / name} {flag}", run_copy)


def test_a_page_replaces_no_other_page(typed: Typed, run_copy: Path, workplace: Path) -> None:
    typed(f"certify {run_copy} --n 100 --max 2")
    (workplace / "site").mkdir()
    (workplace / "site" / "index.html").write_text("keep")
    assert "not a page of smoothctl" in refused(typed, f"report {run_copy} --out site", workplace / "site")
    assert typed(f"report {run_copy} --out page").code == 0
    assert typed(f"report {run_copy} --out page").code == 0


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda text: text + "garbage\tok\n", "does not begin with an index"),
        (lambda text: "", "not a log's header"),
        (lambda text: text.split("\n", 1)[1], "not a log's header"),
        (lambda text: text + text.splitlines()[1] + "\n", "idx is repeated"),
        (lambda text: text.replace("\n1\t", "\n99\t"), "idx 99"),
    ],
)
def test_a_damaged_log_is_not_gone_on_with(typed: Typed, run_copy: Path, damage: object, words: str) -> None:
    line = f"certify {run_copy} --n 100 --max 3"
    typed(line)
    log = run_copy / "certify.tsv"
    log.write_text(damage(log.read_text()))  # type: ignore[operator]
    assert words in refused(typed, line, run_copy)


@pytest.mark.parametrize("sidecar", ["[]", "{}", '{"settings": 5, "planned": 1}', "not json"])
def test_damaged_settings_of_a_log_are_named(typed: Typed, run_copy: Path, sidecar: str) -> None:
    line = f"certify {run_copy} --n 100 --max 3"
    typed(line)
    (run_copy / "certify.json").write_text(sidecar)
    assert "certify.json" in refused(typed, line, run_copy)


@pytest.mark.parametrize(
    "sidecar",
    [
        "[]",
        '{"settings": "x", "planned": "y", "about": 3}',
        '{"settings": {"sigma": "abc"}}',
        '{"about": {"model": 5}}',
    ],
)
def test_one_bad_log_does_not_stop_a_report(typed: Typed, run_copy: Path, workplace: Path, sidecar: str) -> None:
    typed(f"certify {run_copy} --n 100 --max 3")
    shutil.copy(run_copy / "certify.tsv", workplace / "bad.tsv")
    (workplace / "bad.json").write_text(sidecar)
    done = typed(f"report {run_copy} bad.tsv")
    assert done.code == 1
    assert "bad.json" in done.err
    assert "small" in done.out


@pytest.mark.parametrize("idx", [-5, 10**15, 10**25])
def test_an_impossible_idx_is_a_bad_row(typed: Typed, run_copy: Path, workplace: Path, idx: int) -> None:
    typed(f"certify {run_copy} --n 100 --max 3")
    (workplace / "bad.tsv").write_text(f"idx\tlabel\tpredict\tradius\tcorrect\ttime\n{idx}\t1\t1\t0.1\t1\t1\n")
    done = typed(f"report {run_copy} bad.tsv --show compare")
    assert done.code == 1
    assert "line 2" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    "labels",
    [np.eye(5, 10, dtype=int), np.array([0, 1.5, 3, 2, 9]), np.array([0, 1, -3, 2, 9]), np.array(list("abcde"))],
)
def test_labels_must_be_whole_numbers_of_classes(
    typed: Typed, run_copy: Path, workplace: Path, labels: np.ndarray
) -> None:
    np.savez("a.npz", images=np.zeros((5, 8, 8, 1), np.uint8), labels=labels)
    assert "label" in refused(typed, f"certify {run_copy} --data a.npz --n 50 --out q.tsv", workplace)


@pytest.mark.parametrize("change", [{"sigma": -3.0}, {"std": [float("nan")]}, {"std": [0.0]}, {"std": [0.5, 0.5]}])
def test_a_model_with_impossible_settings_is_refused(typed: Typed, run_copy: Path, change: dict) -> None:
    content = torch.load(run_copy / "model.pt", weights_only=True)
    torch.save({**content, "info": {**content["info"], **change}}, run_copy / "model.pt")
    assert "damaged description" in refused(typed, f"certify {run_copy} --n 100 --max 1", run_copy)


@pytest.mark.parametrize("state", [5, {"conv1.weight": "text"}])
def test_a_model_without_tensors_is_refused(typed: Typed, run_copy: Path, state: object) -> None:
    content = torch.load(run_copy / "model.pt", weights_only=True)
    torch.save({**content, "state_dict": state}, run_copy / "model.pt")
    assert "damaged" in refused(typed, f"certify {run_copy} --n 100 --max 1", run_copy)


def test_settings_files_take_lists_and_refuse_what_is_no_table(typed: Typed, workplace: Path) -> None:
    (workplace / "a.toml").write_text("[train]\nmilestones = [1, 2]\noption = {}\n")
    settings = typed("train --config a.toml --epochs 4 --dry-run --json").json()["settings"]
    assert settings["milestones"] == [1, 2]
    (workplace / "b.toml").write_text("train = 5\n")
    done = typed("train --config b.toml")
    assert done.code == 2
    assert "train is a table" in done.err


def test_radii_that_no_votes_can_prove_are_named_first(typed: Typed, run_copy: Path) -> None:
    assert "can never prove the radius 50" in refused(typed, f"certify {run_copy} --radii 50 --max 1", run_copy)
    assert "write numbers" in refused(typed, f"certify {run_copy} --radii , --max 1", run_copy)
    warned = typed(f"certify {run_copy} --radii 0.1,50 --n 500 --max 1")
    assert warned.code == 0
    assert "can never prove the radius 50" in warned.err


def test_the_python_api_refuses_what_it_cannot_take() -> None:
    class OneRow(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.zeros(1, 2)

    images = torch.rand(2, 3, 8, 8)
    with pytest.raises(SmoothctlError, match="for 8 images"):
        certify(OneRow(), images, sigma=0.5, n=100, batch_size=100)
    with pytest.raises(UsageError, match=r"torch\.nn\.Module"):
        certify(lambda x: x, images, sigma=0.5)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="tensor of images"):
        certify(OneRow(), images.numpy(), sigma=0.5)  # type: ignore[arg-type]
    linear = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 2))
    assert len(certify(linear, images.requires_grad_(), sigma=0.5, n=100)) == 2


@pytest.mark.parametrize(
    "words",
    [
        [b"certify", b"m.pt", b"--arch-option", b"\x80\xff"],
        [b"certify", b"\x80.pt"],
        [b"train", b"--method", b"\x80"],
    ],
    ids=["an option", "a file", "a name"],
)
def test_bytes_that_are_no_letters_are_one_line(words: list[bytes], workplace: Path) -> None:
    """As a shell hands over a name in another encoding."""
    command = [sys.executable, "-m", "smoothctl", *words]
    done = subprocess.run(command, cwd=workplace, capture_output=True, check=False)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert b"bug" not in done.stderr
    assert done.stderr.isascii()
