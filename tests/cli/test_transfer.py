"""Transfer from the command line: chains, several teachers, none at hand, what it cost, a sanity check."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest
import torch

from smoothctl import load_model
from smoothctl.records.cost import Link, lineage_of, teachers_of
from smoothctl.records.run_directory import RunDirectory
from tests.cli.conftest import Typed, start
from tests.cli.test_train import same_weights, torchrun, weights
from tests.conftest import PluginMaker

QUICK = "--epochs 2 --check-images 0"
TEACHER = """
sigma = 0.25
[train]
method = "consistency"
arch = "lenet"
epochs = 2
milestones = [1]
out = "small"
[train.option]
lbd = 3
"""


def lines(run: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (run / "epochs.jsonl").read_text().splitlines()]


def test_a_chain_teaches_each_student_by_the_one_before(typed: Typed, trained: Path, workplace: Path) -> None:
    line = f"transfer --teacher {trained} --chain r20,lenet5,lenet {QUICK} --out chain"
    done = typed(line)
    assert done.code == 0, done.err
    runs = [workplace / "chain" / name for name in ("1-resnet20", "2-lenet5", "3-lenet")]
    lineages = [[link.sha256 for link in load_model(run).info.lineage] for run in runs]
    hashes = [load_model(path).sha256 for path in (trained, *runs)]
    assert lineages == [hashes[:1], hashes[:2], hashes[:3]]
    files = {path: path.read_bytes() for run in runs for path in run.iterdir()}
    again = typed(f"{line} --json")
    assert again.err.count("is finished") == 3
    assert [document["run"] for document in again.json()["runs"]] == [f"chain/{run.name}" for run in runs]
    assert {path: path.read_bytes() for run in runs for path in run.iterdir()} == files


def test_a_chain_killed_in_the_middle_goes_on_to_the_same_models(typed: Typed, trained: Path, workplace: Path) -> None:
    line = f"transfer --teacher {trained} --chain lenet,lenet5 --epochs 4 --check-images 0"
    assert typed(f"{line} --out straight").code == 0
    for waited in ("1-lenet", "2-lenet5"):
        process = start(f"{line} --out killed", workplace)
        epochs = workplace / "killed" / waited / "epochs.jsonl"
        while process.poll() is None and not epochs.exists():
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert typed(f"{line} --out killed").code == 0
    for name in ("1-lenet", "2-lenet5"):
        assert same_weights(workplace / "straight" / name, workplace / "killed" / name)


def test_without_a_teacher_one_is_trained_first_and_both_are_accounted_for(typed: Typed, workplace: Path) -> None:
    (workplace / "small.toml").write_text(TEACHER)
    done = typed(f"transfer --teacher-from small.toml --student lenet5 {QUICK} --out student")
    assert done.code == 0, done.err
    teacher = load_model(workplace / "small").info
    assert (teacher.method, teacher.method_options["lbd"], teacher.epochs) == ("consistency", 3.0, 2)
    (link,) = teachers_of(RunDirectory(workplace / "student")) or ()
    assert link.cost is not None
    assert link.cost.forward_passes == 2 * 2 * 1437
    assert link.cost.seconds == pytest.approx(sum(float(str(line["seconds"])) for line in lines(workplace / "small")))
    cost = typed("report --cost student small --json").json()
    student = next(run for run in cost["runs"] if run["run"] == "student")
    assert student["lineage_seconds"] == pytest.approx(student["seconds"] + link.cost.seconds)
    assert student["teacher_passes"] == student["forward_passes"] == 2 * 1437


def test_two_processes_train_teacher_and_student_and_print_one_document(typed: Typed, workplace: Path) -> None:
    # Small steps, since large ones magnify what rounding makes of another order of summation.
    (workplace / "small.toml").write_text(TEACHER.replace("epochs = 2", "epochs = 2\nlr = 0.001"))
    line = "transfer --teacher-from small.toml --student lenet --epochs 1 --lr 0.001 --check-images 0 --json"
    one = typed(f"{line} --out one")
    assert one.code == 0, one.err
    (workplace / "small").rename("alone")
    two = torchrun(f"{line} --out two", workplace)
    assert two.code == 0, two.err
    assert [run["run"] for run in two.json()["runs"]] == ["small", "two"]
    for first, second in (("alone", "small"), ("one", "two")):
        ours, theirs = weights(workplace / first), weights(workplace / second)
        for key in ours:
            torch.testing.assert_close(ours[key], theirs[key], rtol=1e-4, atol=1e-5)


def test_the_cost_of_a_teacher_whose_run_is_gone_is_unknown_and_not_guessed(trained: Path, tmp_path: Path) -> None:
    named = [Link("lenet", "gaussian", "abc")]
    assert lineage_of(tmp_path / "model.pt", named) == named
    (known,) = lineage_of(trained / "model.pt", named)
    assert known.cost is not None


def test_several_teachers_are_one(typed: Typed, trained: Path, workplace: Path) -> None:
    typed("train --dataset digits --arch lenet --sigma 0.25 --epochs 1 --seed 5 --out other")
    done = typed(f"transfer --teacher {trained} --teacher other --student lenet {QUICK} --out student")
    assert done.code == 0, done.err
    (ancestor,) = load_model(workplace / "student").info.lineage
    assert ancestor.arch == "ensemble/lenet+lenet"
    assert len(teachers_of(RunDirectory(workplace / "student")) or ()) == 2


def test_a_sanity_check_measures_student_and_teacher(typed: Typed, trained: Path, workplace: Path) -> None:
    done = typed(f"transfer --teacher {trained} --student lenet --epochs 20 --check-images 30 --out student")
    assert done.code == 0, done.err
    checked = [line["epoch"] for line in lines(workplace / "student") if "certified_accuracy" in line]
    assert checked == [0, 1]
    first = lines(workplace / "student")[0]
    assert first["check_radius"] == 0.25
    assert 0 <= float(str(first["certified_accuracy"])) <= 1
    assert done.err.count("certified at 0.25 on ") == 2
    assert done.err.count("% interval ") == 4
    plain = typed(f"transfer --teacher {trained} --student lenet --epochs 20 --check-images 0 --out plain")
    assert "certified at" not in plain.err
    assert same_weights(workplace / "student", workplace / "plain")


BOX = """
import smoothctl

def sample(shape, sigma, draws):
    return sigma * (2 * draws.uniform(shape) - 1)

@smoothctl.hookimpl
def register_noises():
    return [smoothctl.Noise("box", sample, lambda p, sigma: 2 * sigma * (p - 0.5), norm="l1")]
"""


def test_a_noise_that_cannot_prove_one_sigma_is_trained_without_a_check(
    typed: Typed, make_plugin: PluginMaker, workplace: Path
) -> None:
    make_plugin("box", BOX)
    assert typed("train --arch lenet --noise box --sigma 0.25 --epochs 1 --out box").code == 0
    done = typed("transfer --teacher box --student lenet --epochs 1 --out student")
    assert done.code == 0, done.err
    assert "no sanity check: n=2000 noise samples can never prove the radius 0.25" in done.err
    done = typed("transfer --teacher box --student lenet --epochs 1 --check-radius 0.1 --check-images 10 --out other")
    assert done.code == 0, done.err
    assert "certified at 0.1 on " in done.err


def test_a_sanity_check_keeps_to_its_time_and_says_how_sure_it_is(trained: Path) -> None:
    from smoothctl.hooks.registry import registry
    from smoothctl.images.datasets import open_split
    from smoothctl.training.batches import TrainingData
    from smoothctl.training.execution import Execution
    from smoothctl.training.sanity_check import plan_check
    from smoothctl.training.settings import TrainSettings
    from smoothctl.training.trainer import Trainer

    dataset = registry().find("dataset", "digits").value
    data = TrainingData(dataset, open_split(dataset, "train"), open_split(dataset, "test"))
    trainer = Trainer(
        TrainSettings(method="crt", arch="lenet"), data, Execution(torch.device("cpu")), load_model(trained)
    )
    check = plan_check(0.2, 100_000, 10, 0.25, trainer.noise)
    assert check is not None
    told: list[str] = []
    start = time.perf_counter()
    whole = check.run(trainer, 1e9, told.append)
    everything = time.perf_counter() - start
    assert whole["check_images"] == len(data.heldout)
    assert told[-1] == f"sanity check, {len(data.heldout)}/{len(data.heldout)} images"
    start = time.perf_counter()
    short = check.run(trainer, everything / 10, told.append)
    assert time.perf_counter() - start < everything / 2
    assert 0 < short["check_images"] < len(data.heldout) / 2
    assert check.run(trainer, 0.0, told.append)["check_images"] == 1


def test_a_teacher_at_chance_is_named_before_the_first_epoch(typed: Typed, workplace: Path) -> None:
    typed("train --dataset digits --arch lenet --epochs 1 --lr 1e-9 --out empty")
    done = typed("transfer --teacher empty --student lenet --epochs 1 --check-images 0 --out student")
    assert done.code == 0, done.err
    assert "so is its teacher" in done.out
    assert "next: smoothctl certify" not in done.out
    told = done.err.splitlines()
    named = next(place for place, line in enumerate(told) if "the teacher empty/model.pt is at chance" in line)
    assert named < next(place for place, line in enumerate(told) if line.startswith("epoch 1/1"))
    assert float(str(lines(workplace / "student")[0]["teacher_accuracy"])) < 0.2


@pytest.mark.parametrize("out", ["small", "small/", "./small", "link", "small/model.pt", "other/../small"])
@pytest.mark.parametrize("teacher", ["small", "small/model.pt", "link", "file.pt"])
def test_a_student_is_never_written_over_its_teacher(
    typed: Typed, run_copy: Path, monkeypatch: pytest.MonkeyPatch, teacher: str, out: str
) -> None:
    monkeypatch.chdir(run_copy.parent)
    Path("link").symlink_to("small")
    Path("file.pt").symlink_to("small/model.pt")
    Path("other").mkdir()
    before = {path.name: path.read_bytes() for path in run_copy.iterdir()}
    done = typed(f"transfer --teacher {teacher} --student lenet --epochs 1 --out {out} --overwrite")
    assert done.code == 2
    assert "which it would destroy" in done.err
    assert {path.name: path.read_bytes() for path in run_copy.iterdir()} == before


def test_a_teacher_that_diverged_is_named_as_such(typed: Typed, run_copy: Path, workplace: Path) -> None:
    content = torch.load(run_copy / "model.pt", weights_only=True)
    next(iter(content["state_dict"].values())).fill_(float("nan"))
    torch.save(content, "broken.pt")
    done = typed("transfer --teacher broken.pt --student lenet --epochs 1 --out student")
    assert done.code == 2
    assert "the teacher broken.pt has weights that are not finite" in done.err
    assert not (workplace / "student").exists()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ('heldout_max = "many"', "--heldout-max"),
        ("heldout_max = -2", "--heldout-max"),
        ('check_radius = "far"', "--check-radius"),
        ('workers = "two"', "--workers"),
        ("teacher = 'x'", "sets 'teacher', which train does not know"),
        ('method = "crt"', "--method crt needs a teacher"),
        ("dataset = 4", "unknown dataset '4'"),
    ],
)
def test_a_file_of_settings_for_the_teacher_is_checked_like_the_command(
    typed: Typed, workplace: Path, setting: str, message: str
) -> None:
    (workplace / "small.toml").write_text(f'[train]\nepochs = 1\narch = "lenet"\nout = "small"\n{setting}\n')
    done = typed("transfer --teacher-from small.toml --student lenet --epochs 1 --out out")
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err
    assert not (workplace / "small").exists()


def test_the_sanity_check_agrees_with_certify(typed: Typed, trained: Path, workplace: Path) -> None:
    from smoothctl.hooks.registry import registry
    from smoothctl.images.datasets import open_split
    from smoothctl.training.sanity_check import ALPHA, LIMIT, SELECTION, count_certified, plan_check

    model = load_model(trained)
    heldout = open_split(registry().find("dataset", "digits").value, "test")
    check = plan_check(0.2, 30, 10, 0.25, registry().find("noise", "gaussian").value)
    assert check is not None
    places = check.places(len(heldout))
    found = count_certified(model.classifier, heldout, places, check.radius, 0.25, "gaussian") / len(places)
    done = typed(
        f"certify {trained} --radii 0.2 --n0 {SELECTION} --n {LIMIT} --alpha {ALPHA} --backend eager "
        f"--every {len(heldout) // 30} --max 30 --out log.tsv"
    )
    assert done.code == 0, done.err
    report = typed("report log.tsv --radii 0.2 --json").json()
    assert found == pytest.approx(report["certify"][0]["certified"][0], abs=1e-9)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("--student lenet", "give the teacher"),
        ("--teacher {trained}", "give the student"),
        ("--teacher {trained} --student lenet --chain lenet,lenet", "give the student"),
        ("--teacher {trained} --chain lenet,resnet2", "unknown architecture 'resnet2'"),
        ("--teacher {trained} --teacher-from a.toml --student lenet", "give the teacher"),
        ("--teacher-from missing.toml --student lenet", "cannot read missing.toml"),
        ("--teacher {trained} --student lenet --method gaussian", "does not use a teacher"),
        ("--teacher {trained} --student lenet --teacher-precision fp8", "--teacher-precision"),
        ("--teacher {trained} --student lenet --teacher-precision fp16", "needs a GPU"),
    ],
)
def test_what_cannot_be_taught_is_one_line(
    typed: Typed, trained: Path, workplace: Path, wrong: str, message: str
) -> None:
    done = typed(f"transfer {wrong.format(trained=trained)} --out out")
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err
    assert not (workplace / "out").exists() or not list((workplace / "out").iterdir())


@pytest.mark.parametrize("method", ["kd", "crt-smoothed", "cat-rs -o steps=1"])
def test_other_methods_teach_too(typed: Typed, trained: Path, workplace: Path, method: str) -> None:
    done = typed(
        f"transfer --teacher {trained} --student lenet --method {method} --epochs 1 --check-images 0 --out out"
    )
    assert done.code == 0, done.err
    assert all(torch.isfinite(value).all() for value in load_model("out").classifier.state_dict().values())
