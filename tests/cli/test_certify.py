"""``certify`` and ``predict`` from the command line."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from smoothctl.records.log import read_log
from tests.cli.conftest import Typed, finish, start
from tests.conftest import PluginMaker

DETERMINED = ("idx", "label", "predict", "radius", "top", "p_lower", "n", "votes", "selection", "image")


def determined(log: Path) -> list[tuple[str, ...]]:
    """All cells of a log but the seconds."""
    header, *rows = (line.split("\t") for line in log.read_text().splitlines())
    return [tuple(row[header.index(name)] for name in DETERMINED) for row in rows]


def test_certify_writes_a_log_that_says_how_it_was_made(typed: Typed, run_copy: Path) -> None:
    done = typed(f"certify {run_copy} --n 500 --every 60")
    assert done.code == 0
    log = run_copy / "certify.tsv"
    assert log.read_text().splitlines()[0].split("\t")[:6] == ["idx", "label", "predict", "radius", "correct", "time"]
    assert [row.idx for row in read_log(log).rows] == list(range(0, 360, 60))
    about = json.loads(log.with_suffix(".json").read_text())
    for key in (
        "sigma",
        "n0",
        "n",
        "alpha",
        "seed",
        "model",
        "dataset",
        "split",
        "every",
        "rule",
        "precision",
        "device",
    ):
        assert key in about["settings"]
    assert about["about"]["versions"]["smoothctl"] == "0.1.0"
    for row in read_log(log).rows:
        assert sum(row.votes.values()) == row.n == 500


def test_the_one_rule_of_writing(typed: Typed, run_copy: Path) -> None:
    line = f"certify {run_copy} --n 500 --every 60"
    typed(line)
    log = run_copy / "certify.tsv"
    before = log.read_bytes()
    again = typed(line)
    assert (again.code, log.read_bytes()) == (0, before)
    assert "is finished" in again.err
    refused = typed(f"certify {run_copy} --n 600 --sigma 0.5 --every 60")
    assert refused.code == 2
    assert "n 500 in file, 600 requested" in refused.err
    assert "sigma 0.25 in file, 0.5 requested" in refused.err
    assert log.read_bytes() == before
    assert typed(f"certify {run_copy} --n 600 --every 60 --overwrite").code == 0
    assert read_log(log).rows[0].n == 600


@pytest.mark.parametrize("flags", ["--batch-size 37", "--batch-size 3000", "--every 120 --out part.tsv"])
def test_rows_do_not_depend_on_batch_or_subset(typed: Typed, run_copy: Path, flags: str, workplace: Path) -> None:
    typed(f"certify {run_copy} --n 500 --every 60 --out whole.tsv")
    typed(f"certify {run_copy} --n 500 --every 60 --out other.tsv {flags}")
    other = workplace / ("part.tsv" if "part.tsv" in flags else "other.tsv")
    assert set(determined(other)) <= set(determined(workplace / "whole.tsv"))


def test_a_half_written_line_is_dropped_and_done_again(typed: Typed, run_copy: Path) -> None:
    line = f"certify {run_copy} --n 500 --every 60"
    typed(line)
    log = run_copy / "certify.tsv"
    whole = determined(log)
    text = log.read_text()
    log.write_text(text[: text.rindex("\n300\t") + 12])  # cut inside of the last row, at a valid number
    assert "cut short" in " ".join(read_log(log).notices)
    done = typed(line)
    assert done.code == 0
    assert "5 of 6 images are on record" in done.err
    assert determined(log) == whole


def test_kill_in_the_middle_loses_at_most_the_images_under_way(typed: Typed, run_copy: Path, workplace: Path) -> None:
    line = f"certify {run_copy} --n 20000 --every 30 --out killed.tsv"
    process = start(line, workplace)
    log = workplace / "killed.tsv"
    while not log.exists() or log.read_text().count("\n") < 4:
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    kept = determined(log)
    assert len(kept) >= 3
    done = typed(line)
    assert "going on" in done.err
    typed(line.replace("killed", "straight"))
    assert determined(log) == determined(workplace / "straight.tsv")
    assert determined(log)[: len(kept)] == kept


def test_interrupt_exits_130(run_copy: Path, workplace: Path) -> None:
    process = start(f"certify {run_copy} --n 50000 --out log.tsv", workplace)
    while not (workplace / "log.tsv").exists() or (workplace / "log.tsv").read_text().count("\n") < 2:
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    done = finish(process)
    assert done.code == 130
    assert done.err.count("\n") < 10
    assert "Traceback" not in done.err


def test_second_writer_is_told_who_the_first_is(typed: Typed, run_copy: Path, workplace: Path) -> None:
    line = f"certify {run_copy} --n 50000 --out log.tsv"
    process = start(line, workplace)
    while not (workplace / "log.tsv").exists():
        assert process.poll() is None
        time.sleep(0.02)
    refused = typed(line)
    process.kill()
    process.communicate()
    assert refused.code == 1
    assert f"log.tsv is being written by process {process.pid}" in refused.err


@pytest.mark.parametrize(
    ("flags", "indices"),
    [
        ("--skip 20 --max 50", list(range(0, 360, 20))),
        ("--every 20 --max 3", [0, 20, 40]),
        ("--start 6 --stop 20 --every 7", [6, 13]),
        ("--start 350", list(range(350, 360))),
    ],
)
def test_plan_is_printed_first(typed: Typed, trained: Path, flags: str, indices: list[int]) -> None:
    document = typed(f"certify {trained} --n 1000 --dry-run --json {flags}").json()
    assert document["indices"] == indices
    assert document["forward_passes"] == len(indices) * 1100
    assert not (trained / "certify.tsv").exists()
    text = typed(f"certify {trained} --n 1000 --dry-run {flags}")
    assert "forward passes each" in text.out
    assert "estimate: about" in text.out


def test_an_empty_subset_is_refused(typed: Typed, trained: Path) -> None:
    done = typed(f"certify {trained} --start 360")
    assert done.code == 2
    assert "no image of 360" in done.err


def test_sigma_that_the_model_was_not_trained_for_is_named(typed: Typed, run_copy: Path) -> None:
    done = typed(f"certify {run_copy} --sigma 1.0 --n 100 --max 1")
    assert "trained for sigma 0.25, here sigma is 1" in done.err
    assert "trained for" not in typed(f"certify {run_copy} --n 100 --max 1 --overwrite").err


def test_newest_run_is_taken_and_named(typed: Typed, run_copy: Path, workplace: Path) -> None:
    done = typed("certify --n 100 --alpha 0.001 --max 1")
    assert done.code == 0
    assert "runs/small" in done.err
    assert (run_copy / "certify.tsv").exists()


def test_a_lone_model_file_is_taken_and_several_are_named(typed: Typed, trained: Path, workplace: Path) -> None:
    done = typed("certify --n 100 --max 1")
    assert done.code == 2
    assert "neither a run below runs/ nor a model file; name one, or train one with: smoothctl train" in done.err
    shutil.copy(trained / "model.pt", workplace / "mine.pt")
    (workplace / "data.npz").write_bytes(b"no model")
    done = typed("certify --n 100 --max 1")
    assert done.code == 0
    assert "no MODEL was given: taking the only model file here, mine.pt" in done.err
    shutil.copy(trained / "model.pt", workplace / "other.pth")
    done = typed("certify --n 100 --max 1")
    assert done.code == 2
    assert "2 model files are here (mine.pt, other.pth); name one" in done.err


def test_a_run_is_certified_from_within(typed: Typed, run_copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(run_copy)
    done = typed("certify --n 100 --max 1")
    assert done.code == 0
    assert "taking the run here, ." in done.err
    assert (run_copy / "certify.tsv").exists()


def test_json_is_one_document_and_progress_goes_to_stderr(typed: Typed, run_copy: Path) -> None:
    document = typed(f"certify {run_copy} --n 100 --max 2 --json").json()
    assert [row["idx"] for row in document["rows"]] == [0, 1]
    assert typed(f"predict {run_copy} --n 100 --max 2 --json").json()["predict"][0]["images"] == 2


BROKEN_IMAGES = """
import numpy as np
import smoothctl

class Images:
    def __len__(self):
        return 5
    def __getitem__(self, index):
        if index == 3:
            raise OSError("image file is truncated")
        return np.full((8, 8), 20 * index, np.uint8), index
    def image_id(self, index):
        return f"folder/{index}.png"

@smoothctl.hookimpl
def register_datasets():
    load = lambda split, data, download: Images()
    return [smoothctl.Dataset("broken", load, (1, 8, 8), tuple("0123456789"), (0.5,), (0.5,))]
"""


def test_a_broken_image_is_one_failed_row(
    typed: Typed, run_copy: Path, make_plugin: PluginMaker, workplace: Path
) -> None:
    make_plugin("broken", BROKEN_IMAGES)
    done = typed(f"certify {run_copy} --dataset broken --n 100 --out log.tsv")
    assert done.code == 1
    assert "1 of 5 images failed" in done.err
    rows = read_log(workplace / "log.tsv").rows
    assert [row.idx for row in rows] == [0, 1, 2, 3, 4]
    assert [row.failed for row in rows] == [False, False, False, True, False]
    assert rows[4].image == "folder/4.png"
    assert not rows[3].correct


def test_pixels_out_of_range_stop_the_run(
    typed: Typed, run_copy: Path, make_plugin: PluginMaker, workplace: Path
) -> None:
    source = BROKEN_IMAGES.replace(
        "np.full((8, 8), 20 * index, np.uint8)", "__import__('torch').full((1, 8, 8), 255.0)"
    )
    make_plugin("loud", source)
    done = typed(f"certify {run_copy} --dataset broken --n 100 --out log.tsv")
    assert done.code == 1
    assert "values from 255 to 255" in done.err


def test_classes_must_be_those_of_the_dataset(typed: Typed, run_copy: Path, make_plugin: PluginMaker) -> None:
    make_plugin(
        "renamed",
        BROKEN_IMAGES.replace("tuple('0123456789')", "x").replace('tuple("0123456789")', 'tuple("x123456789")'),
    )
    done = typed(f"certify {run_copy} --dataset broken --n 100")
    assert done.code == 2
    assert "dataset broken has 10, of which 'x' is none of the model's" in done.err


def test_predict_on_a_split_and_on_files(typed: Typed, run_copy: Path, workplace: Path) -> None:
    done = typed(f"predict {run_copy} --n 100 --every 90")
    assert done.code == 0
    log = read_log(run_copy / "predict.tsv")
    assert log.kind == "predict"
    assert len(log.rows) == 4
    Image.fromarray(np.zeros((30, 20, 3), np.uint8)).save(workplace / "a.png")
    Image.fromarray(np.full((8, 8), 200, np.uint8)).save(workplace / "b.png")
    files = typed(f"predict {run_copy} a.png b.png --n 100")
    assert files.code == 0
    assert [line.split(":")[0] for line in files.out.splitlines()] == ["a.png", "b.png"]
    assert "a.png: 20x30 resized and centre-cropped to 8x8" in files.err
    both = typed(f"predict {run_copy} a.png b.png --n 100 --json").json()["predictions"]
    (alone,) = typed(f"predict {run_copy} b.png --n 100 --json").json()["predictions"]
    assert alone == both[1]
    assert sum(alone["votes"].values()) == 100


def test_predict_refuses_what_is_no_image(typed: Typed, run_copy: Path, workplace: Path) -> None:
    (workplace / "text.png").write_text("not an image")
    done = typed(f"predict {run_copy} text.png")
    assert done.code == 2
    assert "text.png cannot be read (it is no image that Pillow knows)" in done.err
    Image.fromarray(np.zeros((8, 8), np.uint8)).save(workplace / "a.png")
    done = typed(f"predict {run_copy} text.png missing.png a.png --n 100")
    assert done.code == 2
    assert done.out.startswith("a.png: ")
    assert "text.png cannot be read" in done.err
    assert "missing.png" in done.err
    assert "(2 of 3 files cannot be read)" in done.err


def test_predict_takes_folders(typed: Typed, run_copy: Path, workplace: Path) -> None:
    (workplace / "images" / "deep").mkdir(parents=True)
    for name in ("b.png", "deep/a.jpg"):
        Image.fromarray(np.zeros((8, 8), np.uint8)).save(workplace / "images" / name)
    (workplace / "images" / "notes.txt").write_text("no image")
    done = typed(f"predict {run_copy} images --n 100")
    assert done.code == 0
    assert [line.split(":")[0] for line in done.out.splitlines()] == ["images/b.png", "images/deep/a.jpg"]
    (workplace / "empty").mkdir()
    done = typed(f"predict {run_copy} empty --n 100")
    assert done.code == 2
    assert "there is no image below empty" in done.err


def test_predicting_files_takes_no_option_of_a_split_in_silence(typed: Typed, run_copy: Path, workplace: Path) -> None:
    Image.fromarray(np.zeros((8, 8), np.uint8)).save(workplace / "a.png")
    done = typed(f"predict {run_copy} a.png --out answers.tsv --every 2")
    assert done.code == 2
    assert "leave out --every and --out, which a dataset's split takes" in done.err
    assert "leave out the other images" in typed(f"predict {run_copy} - a.png").err
    plan = typed(f"predict {run_copy} a.png --n 100 --dry-run")
    assert plan.code == 0
    assert plan.out.startswith("plan: 1 image files, 100 forward passes each, 100 in all, at sigma")
    assert typed(f"predict {run_copy} a.png --n 100 --dry-run --json").json() == {"plan": {"images": 1, "samples": 100}}


def test_json_lines_are_answered_one_by_one(run_copy: Path, workplace: Path) -> None:
    Image.fromarray(np.zeros((8, 8), np.uint8)).save(workplace / "a.png")
    process = subprocess.Popen(
        [sys.executable, "-m", "smoothctl", "predict", str(run_copy), "-", "--n", "100"], text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin
    assert process.stdout

    def ask(line: str) -> dict[str, Any]:
        process.stdin.write(line + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())  # before the next question is written

    first = ask('{"image": "a.png", "id": 7}')
    assert (first["image"], first["id"], first["n"], sum(first["votes"].values())) == ("a.png", 7, 100, 100)
    assert ask('"a.png"') == {key: value for key, value in first.items() if key != "id"}
    assert "no.png" in ask('{"image": "no.png", "id": 8}')["error"]
    assert ask("what")["error"] == "no JSON: what"
    assert "image" in ask('{"path": 3}')["error"]
    assert ask('{"image": "a.png", "id": 7}') == first
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "")
    assert "Traceback" not in err


OWN = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind, self.linear = kind, nn.Linear(64, 10)

    def forward(self, x):
        z = self.linear(x.flatten(1))
        if self.kind == "majority":
            return nn.functional.one_hot(z.argmax(1).mode().values, 10).float().expand(len(x), 10)
        if self.kind == "alive":
            return nn.functional.dropout(z, 0.5, training=True)
        return {"logits": z, "features": x}

def majority(spec): return Net("majority")
def alive(spec): return Net("alive")
def entry(spec): return Net("entry")
"""


def own_weights(workplace: Path) -> str:
    import torch

    (workplace / "own.py").write_text(OWN)
    torch.manual_seed(0)
    linear = torch.nn.Linear(64, 10)
    torch.save({f"linear.{name}": value for name, value in linear.state_dict().items()}, workplace / "own.pt")
    return "--dataset digits --sigma 1 --normalize none --n 100 --max 2 --out own.tsv"


@pytest.mark.parametrize(("kind", "named"), [("majority", "majority"), ("alive", "dropout")])
@pytest.mark.parametrize("command", ["certify", "predict"])
def test_networks_that_answer_for_their_batch_are_refused(
    typed: Typed, workplace: Path, kind: str, named: str, command: str
) -> None:
    options = own_weights(workplace)
    done = typed(f"{command} own.pt --arch own.py:{kind} {options}")
    assert done.code == 2
    assert named in done.err
    assert "Traceback" not in done.err


def test_logits_are_taken_from_what_an_own_network_returns(typed: Typed, workplace: Path) -> None:
    options = own_weights(workplace)
    done = typed(f"certify own.pt --arch own.py:entry {options}")
    assert done.code == 0
    assert "'logits' in it is taken for the logits" in done.err
    assert len(read_log(workplace / "own.tsv").rows) == 2


def test_a_log_records_its_arithmetic_and_is_not_mixed_with_older_ones(typed: Typed, run_copy: Path) -> None:
    line = f"certify {run_copy} --n 200 --max 2"
    assert typed(line).code == 0
    sidecar = run_copy / "certify.json"
    about = json.loads(sidecar.read_text())
    assert about["settings"]["arithmetic"] == "exact, grid 1/240"
    assert 0 < about["about"]["distance"] < 1e-13
    assert "exact arithmetic" in " ".join(typed(f"report {run_copy}").err.split())
    del about["settings"]["arithmetic"]
    sidecar.write_text(json.dumps(about))
    older = typed(line)
    assert older.code == 2
    assert "arithmetic" in older.err
    assert "floating point, whose rounding no proof covers" in " ".join(typed(f"report {run_copy}").err.split())


def test_another_draw_says_that_it_spends_alpha_again(typed: Typed, run_copy: Path) -> None:
    typed(f"certify {run_copy} --n 200 --max 2")
    assert "spends alpha" not in typed(f"certify {run_copy} --n 200 --max 2 --overwrite").err
    for other, named in (("--n 200 --seed 1", "another seed"), ("--n 400 --seed 1", "another n")):
        done = typed(f"certify {run_copy} {other} --max 2 --overwrite")
        assert f"{named}: certifying these images again spends alpha" in done.err


def test_a_requirement_stops_when_it_is_decided_and_the_log_says_so(typed: Typed, workplace: Path, run_copy: Path):
    line = f"certify {run_copy} --n 2000 --max 60"
    met = typed(f"{line} --require acc@0.05>=20% --out met.tsv")
    assert met.code == 0, met.err
    assert "acc@0.05>=20% is met (12 certified) after" in met.err
    log = read_log(workplace / "met.tsv")
    assert 12 <= len(log) < 60
    assert log.settings is not None
    assert log.settings["radii"] == [0.05]
    assert not (log.columns["idx"] == range(len(log))).all()
    reported = typed("report met.tsv")
    assert "stopped early, acc@0.05>=20% is met (12 certified) after" in reported.err
    assert "INCOMPLETE" not in reported.err
    again = typed(f"{line} --require acc@0.05>=20% --out met.tsv")
    assert again.code == 0
    assert "nothing to do" in again.err
    failed = typed(f"{line} --require acc@0.05>=99% --out met.tsv")
    assert failed.code == 3
    assert "--require is not met: acc@0.05>=99% is not met" in failed.err
    whole = typed(f"{line} --radii 0.05 --skip-misclassified --out met.tsv")
    assert whole.code == 0, whole.err
    assert len(read_log(workplace / "met.tsv")) == 60
    assert "stopped early" not in typed("report met.tsv").err


@pytest.mark.parametrize("option", ["--shard 1/2", "--merge"])
def test_a_requirement_is_decided_by_one_process(typed: Typed, run_copy: Path, option: str):
    refused = typed(f"certify {run_copy} --require acc@0.5>=0.6 {option}")
    assert refused.code == 2
    assert "decided by one process" in refused.err
