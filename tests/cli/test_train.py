"""``train`` and ``transfer`` from the command line."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from smoothctl import load_model
from tests.cli.conftest import Finished, Typed, finish, start

QUICK = "--dataset digits --arch lenet --sigma 0.25 --epochs 1"


def weights(run: Path) -> dict[str, torch.Tensor]:
    return load_model(run).classifier.state_dict()


def same_weights(first: Path, second: Path) -> bool:
    one, other = weights(first), weights(second)
    return all(torch.equal(one[key], other[key]) for key in one)


def test_train_writes_a_run_and_the_same_command_touches_nothing(typed: Typed, workplace: Path) -> None:
    done = typed(f"train {QUICK} --out run")
    assert done.code == 0
    assert "smoothctl certify run" in done.out
    files = {path.name: path.read_bytes() for path in (workplace / "run").iterdir()}
    assert set(files) == {"model.pt", "settings.json", "epochs.jsonl"}
    again = typed(f"train {QUICK} --out run")
    assert again.code == 0
    assert "is finished" in again.err
    assert {path.name: path.read_bytes() for path in (workplace / "run").iterdir()} == files


def test_other_settings_are_refused_by_name_unless_overwritten(typed: Typed, workplace: Path) -> None:
    typed(f"train {QUICK} --out run")
    before = (workplace / "run" / "model.pt").read_bytes()
    refused = typed(f"train {QUICK} --sigma 0.5 --out run")
    assert refused.code == 2
    assert "sigma 0.25 in file, 0.5 requested" in refused.err
    assert (workplace / "run" / "model.pt").read_bytes() == before
    assert typed(f"train {QUICK} --sigma 0.5 --out run --overwrite").code == 0
    assert load_model(workplace / "run").info.sigma == 0.5


def test_a_folder_of_something_else_is_left_alone(typed: Typed, workplace: Path) -> None:
    (workplace / "thesis").mkdir()
    (workplace / "thesis" / "chapter.tex").write_text("text")
    for line in (f"train {QUICK} --out thesis", f"train {QUICK} --out thesis --overwrite"):
        assert typed(line).code == 2
    assert (workplace / "thesis" / "chapter.tex").read_text() == "text"


def test_model_file_says_how_it_was_made(trained: Path) -> None:
    info = load_model(trained).info
    assert (info.arch, info.method, info.dataset, info.sigma, info.noise) == (
        "lenet",
        "gaussian",
        "digits",
        0.25,
        "gaussian",
    )
    assert info.class_names == list("0123456789")
    assert info.plugins["method"]["distribution"] == "smoothctl"
    lines = [json.loads(line) for line in (trained / "epochs.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == [0, 1]
    assert all(0 <= line["heldout_accuracy"] <= 1 for line in lines)


def test_seed_makes_a_run_repeatable(typed: Typed, workplace: Path) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        typed(f"train {QUICK} --seed {seed} --out {name}")
    assert same_weights(workplace / "a", workplace / "b")
    assert not same_weights(workplace / "a", workplace / "c")


@pytest.mark.parametrize("how", ["--milestones 2,5", "--optimizer adamw --lr 0.001 --ema 0.9 --method consistency"])
def test_killed_training_leaves_a_loadable_model_and_goes_on_exactly(typed: Typed, workplace: Path, how: str) -> None:
    line = f"train --dataset digits --arch lenet --sigma 0.25 --epochs 8 {how}"
    typed(f"{line} --out straight")
    delays = random.Random(0)
    for _ in range(4):
        process = start(f"{line} --out killed", workplace)
        epochs = workplace / "killed" / "epochs.jsonl"
        before = epochs.read_text().count("\n") if epochs.exists() else 0
        while process.poll() is None and (not epochs.exists() or epochs.read_text().count("\n") <= before):
            time.sleep(0.01)
        time.sleep(delays.random() * 0.3)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert load_model(workplace / "killed").info.epochs >= before
    done = typed(f"{line} --out killed")
    assert done.code == 0
    assert same_weights(workplace / "straight", workplace / "killed")
    rates = [
        [json.loads(row)["lr"] for row in (workplace / run / "epochs.jsonl").read_text().splitlines()]
        for run in ("straight", "killed")
    ]
    assert rates[0] == rates[1]
    assert len(set(rates[0])) == 3
    assert not list((workplace / "killed").glob(".*.tmp"))


@pytest.mark.parametrize("method", ["gaussian", "smoothmix -o T=1", "cat-rs -o steps=1"])
def test_two_processes_equal_one_with_the_same_batch(typed: Typed, workplace: Path, method: str) -> None:
    # Batches of 103, 103 and 97 images, which two processes share unevenly; lenet has no batch norm. After more steps
    # an attack's normalised gradients have magnified how sums are rounded in batches of other sizes.
    line = f"train {QUICK} --limit 303 --method {method} --batch-size 103"
    assert typed(f"{line} --out one").code == 0
    done = torchrun(f"{line} --out two", workplace)
    assert done.code == 0, done.err
    assert done.out.count("two: lenet on digits") == 1
    one, two = weights(workplace / "one"), weights(workplace / "two")
    for key in one:
        torch.testing.assert_close(one[key], two[key], rtol=1e-4, atol=1e-5)
    lines = [json.loads((workplace / run / "epochs.jsonl").read_text()) for run in ("one", "two")]
    assert lines[0]["loss"] == pytest.approx(lines[1]["loss"], rel=1e-5)
    assert lines[0]["forward_passes"] == lines[1]["forward_passes"]


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are listed by Linux")
def test_no_thread_of_the_group_lives_when_python_ends(workplace: Path) -> None:
    # One that does can abort a process whose work is done.
    (workplace / "probe.py").write_text("""
import atexit, sys
from pathlib import Path
from smoothctl.cli import main

def say():
    print("threads:", *(path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")))

atexit.register(say)
main(sys.argv[1:])
""")
    done = torchrun(f"train {QUICK} --out run", workplace, program=("probe.py",))
    assert done.code == 0, done.err
    assert done.out.count("threads:") == 2
    assert "gloo" not in done.out


def torchrun(line: str, cwd: Path, program: Sequence[str] = ("-m", "smoothctl")) -> Finished:
    """Run ``smoothctl`` in two processes, as torchrun does."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]
    done = subprocess.run(
        [*command, *program, *line.split()],
        cwd=cwd, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    return Finished(done.returncode, done.stdout, done.stderr)


def test_lower_precision_and_the_average_are_on_record(typed: Typed, workplace: Path) -> None:
    done = typed(f"train {QUICK} --precision bf16 --ema 0.5 --clip 1 --nesterov --out run")
    assert done.code == 0, done.err
    settings = json.loads((workplace / "run" / "settings.json").read_text())["settings"]
    assert (settings["precision"], settings["ema"], settings["clip"]) == ("bf16", 0.5, 1.0)
    assert all(value.dtype == torch.float32 for value in weights(workplace / "run").values())


def test_automatic_precision_is_measured_once_and_on_record(typed: Typed, workplace: Path) -> None:
    line = f"train {QUICK} --precision auto --out run"
    done = typed(line)
    assert done.code == 0, done.err
    found = re.search(r"--precision auto: (fp32|bf16) \(.*fp32 [\d.]+ ms, bf16 [\d.]+ ms\)", done.err)
    assert found is not None, done.err
    assert json.loads((workplace / "run" / "settings.json").read_text())["settings"]["precision"] == found[1]
    again = typed(line)
    assert f"--precision auto: {found[1]}, as the run in run has it" in again.err
    assert "is finished" in again.err


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("--precision fp16", "needs a GPU"),
        ("--optimizer adamv", "Did you mean"),
        ("--optimizer adamw --nesterov", "belongs to --optimizer sgd"),
        ("--schedule poly", "--schedule"),
        ("--track tensorbord", "Did you mean tensorboard"),
        ("--ema 1.5", "--ema"),
        ("--heldout-max 0", "--heldout-max"),
        ("--check-radius -1", "--check-radius"),
        ("--check-radius nan", "--check-radius"),
        ("--check-radius 100", "--check-radius 100: n=2000 noise samples can never prove the radius 100"),
        ("--size 16", "digits has arrays of shape (1, 8, 8), which are not resized to (1, 16, 16)"),
        ("--method macer -o lambda=12", "Did you mean lbd?"),
        ("--method smoothadv -o warmup=3", "Did you mean warmup_epochs?"),
    ],
)
def test_wrong_settings_of_the_loop_are_one_line_and_write_nothing(
    typed: Typed, workplace: Path, wrong: str, message: str
) -> None:
    done = typed(f"train {QUICK} {wrong} --out run")
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err
    assert typed(f"train {QUICK} --out run").code == 0


def test_the_nearest_recipe_is_used_and_named(typed: Typed, workplace: Path) -> None:
    images = np.zeros((20, 28, 28), np.uint8)
    np.savez("m.npz", x_train=images, y_train=np.arange(20) % 10, x_test=images, y_test=np.arange(20) % 10)
    done = typed("train --method macer --dataset mnist --data m.npz --sigma 0.3 --epochs 2 -o lbd=3 --dry-run --json")
    assert "sigma 0.25: the nearest" in done.err
    settings = done.json()["settings"]
    assert (settings["options"]["k"], settings["options"]["lbd"], settings["lr"]) == (16, 3.0, 0.01)
    assert done.json()["plan"]["forward_passes_per_image"] == 16


def test_diverged_training_stops_and_keeps_the_last_good_model(typed: Typed, workplace: Path) -> None:
    done = typed(f"train {QUICK} --lr 1e30 --out run")
    assert done.code == 1
    assert "diverged. There is no good model yet; try a smaller --lr (now 1e+30)" in done.err
    assert not (workplace / "run" / "model.pt").exists()


def test_other_labels_are_other_settings(typed: Typed, workplace: Path) -> None:
    images, labels = np.zeros((40, 8, 8), np.uint8), np.arange(40) % 3
    line = "train --dataset npz --data d.npz --arch lenet --epochs 1 --out run"
    np.savez("d.npz", x_train=images, y_train=labels, x_test=images, y_test=labels)
    assert typed(line).code == 0
    labels[7] = (labels[7] + 1) % 3
    np.savez("d.npz", x_train=images, y_train=labels, x_test=images, y_test=labels)
    done = typed(line)
    assert done.code == 2
    assert "made with other settings: labels" in done.err


def test_processes_that_cannot_begin_say_so_once_without_a_traceback(
    typed: Typed, trained: Path, workplace: Path
) -> None:
    done = torchrun(f"train {QUICK} --lr 0.5 --out {trained}", workplace)
    assert done.code != 0
    assert done.err.count("was made with other settings") == 1
    assert "since the first one could not begin" in done.err
    assert "[rank1]" not in done.err


def test_what_diverges_later_keeps_the_model_of_the_epoch_before(typed: Typed, workplace: Path) -> None:
    done = typed(f"train {QUICK} --epochs 3 --milestones 1 --gamma 1e30 --out run")
    assert done.code == 1
    assert "The model of epoch 1 is kept" in done.err
    assert "another --out or --overwrite" in done.err
    assert load_model("run").info.epochs == 1


def test_a_last_batch_of_one_image_under_batch_norm_is_named(typed: Typed, workplace: Path) -> None:
    images = np.zeros((5, 8, 8), np.uint8)
    np.savez("five.npz", x_train=images, y_train=np.arange(5) % 2, x_test=images, y_test=np.arange(5) % 2)
    done = typed("train --dataset npz --data five.npz --arch timm/resnet18 --epochs 1 --batch-size 4 --out run")
    assert done.code == 1
    assert "batch norm cannot learn from one image" in done.err


def test_a_single_class_is_refused(typed: Typed, workplace: Path) -> None:
    images = np.zeros((5, 8, 8), np.uint8)
    np.savez("one.npz", x_train=images, y_train=np.zeros(5, int), x_test=images, y_test=np.zeros(5, int))
    done = typed("train --dataset npz --data one.npz --arch lenet --method macer --epochs 1 --out run")
    assert done.code == 2
    assert "single class" in done.err


def test_transfer_takes_dataset_and_sigma_from_the_teacher_and_records_it(
    typed: Typed, trained: Path, workplace: Path
) -> None:
    shutil.copy(trained / "model.pt", workplace / "r110.pt")
    done = typed("transfer --teacher r110.pt --student r20 --epochs 1")
    assert done.code == 0
    student = load_model(workplace / "runs" / "digits-crt-resnet20-0.25")
    assert (student.info.dataset, student.info.sigma, student.info.arch) == ("digits", 0.25, "resnet20")
    (ancestor,) = student.info.lineage
    assert ancestor.sha256 == load_model(trained).sha256
    assert typed("transfer --teacher runs/digits-crt-resnet20-0.25 --student lenet --epochs 1 --out c").code == 0
    assert [link.method for link in load_model(workplace / "c").info.lineage] == ["gaussian", "crt"]


def test_regnetx_is_known_to_transfer(typed: Typed, trained: Path, workplace: Path) -> None:
    done = typed(f"transfer --teacher {trained} --student regnetx --dry-run --json")
    assert done.json()["settings"]["arch"] == "regnetx_200mf"


def test_transfer_warns_of_another_sigma_and_refuses_other_images(typed: Typed, trained: Path, workplace: Path) -> None:
    warned = typed(f"transfer --teacher {trained} --student lenet --sigma 1.0 --dry-run")
    assert "sigma 0.25" in warned.err
    assert "sigma 1" in warned.err
    np.savez("small.npz", train_images=np.zeros((4, 28, 28), np.uint8), train_labels=np.arange(4),
             test_images=np.zeros((4, 28, 28), np.uint8), test_labels=np.arange(4))  # fmt: skip
    refused = typed(f"transfer --teacher {trained} --student lenet --dataset mnist --data small.npz")
    assert refused.code == 2
    assert "teacher takes images of shape (1, 8, 8)" in refused.err


def test_npz_arrays_serve_any_dataset_that_they_fit(typed: Typed, workplace: Path) -> None:
    generator = np.random.default_rng(0)
    images = generator.integers(0, 256, (20, 32, 32, 3), dtype=np.uint8)
    np.savez("c.npz", x_train=images, y_train=np.arange(20) % 10, x_test=images, y_test=np.arange(20) % 10)
    done = typed("train --dataset cifar10 --data c.npz --arch r20 --epochs 1 --out run --json")
    assert done.code == 0, done.err
    assert len(done.json()["epochs"]) == 1
    assert typed("certify run --data c.npz --n 20 --max 2").code == 0


def test_train_json_is_one_document(typed: Typed, workplace: Path) -> None:
    document = typed(f"train {QUICK} --out run --json").json()
    assert document["run"] == "run"


def test_a_model_that_learnt_nothing_is_said_to_be_no_better_than_guessing(typed: Typed, workplace: Path) -> None:
    done = typed(f"train {QUICK} --lr 1e-9 --out run")
    assert done.code == 0
    assert "hardly better than guessing" in done.out
    assert "try --epochs 2, --lr 1e-10 (now 1e-09)" in done.out
    assert "next: smoothctl certify" not in done.out
    good = typed("train --dataset digits --arch lenet --epochs 3 --out good").out
    assert "guessing" not in good
    assert "next: smoothctl certify good" in good


def test_dry_run_writes_nothing(typed: Typed, workplace: Path) -> None:
    done = typed("train --dry-run")
    assert done.code == 0
    for words in ("lenet", "0.25", "steps an epoch"):
        assert words in done.out
    assert list(workplace.iterdir()) == []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_exits_130_and_goes_on(workplace: Path, how: signal.Signals) -> None:
    line = "train --dataset digits --arch lenet --epochs 60 --out run"
    process = start(line, workplace)
    while not (workplace / "run" / "model.pt").exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(how)
    done = finish(process)
    assert done.code == 130
    assert "goes on" in done.err
    assert "Traceback" not in done.err


def test_two_processes_cannot_train_in_one_run(typed: Typed, workplace: Path) -> None:
    process = start("train --dataset digits --arch lenet --epochs 60 --out run", workplace)
    while not (workplace / "run" / "model.pt").exists():
        time.sleep(0.05)
    refused = typed("train --dataset digits --arch lenet --epochs 60 --out run")
    process.kill()
    process.communicate()
    assert refused.code == 1
    assert f"is being written by process {process.pid}" in refused.err


@pytest.mark.parametrize("name", ["model.safetensors"])
def test_safetensors_file_is_a_model_too(typed: Typed, trained: Path, workplace: Path, name: str) -> None:
    from smoothctl.models.checkpoint import save_model

    model = load_model(trained)
    save_model(workplace / name, model.info, model.classifier.network.state_dict())
    assert typed(f"certify {name} --n 100 --max 2").code == 0
    assert (workplace / "model.certify.tsv").exists()


def digit_folder(place: Path) -> None:
    """A tree of images of the embedded digits, few of each class."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    for index, (image, label) in enumerate(zip(digits.images[:60], digits.target[:60], strict=True)):
        folder = place / ("train" if index < 40 else "test") / str(label)
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray((image * 15).astype(np.uint8)).save(folder / f"{index}.png")


def test_a_broken_test_image_is_named_with_its_split_and_loses_no_epoch(typed: Typed, workplace: Path) -> None:
    digit_folder(workplace / "data")
    line = "train --dataset folder --data data --arch lenet --epochs 3 --lr 0.01 --batch-size 16"
    assert typed(f"{line} --out straight").code == 0
    broken = next((workplace / "data" / "test").rglob("*.png"))
    whole = broken.read_bytes()
    assert typed(f"{line} --out run --epochs 1").code == 0
    broken.write_bytes(whole[:40])
    done = typed(f"{line} --out run --overwrite")
    assert done.code == 1
    assert "the test split: image" in done.err
    assert f"{broken.parent.name}/{broken.name}" in done.err
    assert "No epoch is lost" in done.err
    assert (workplace / "run" / "state.pt").exists()
    broken.write_bytes(whole)
    resumed = typed(f"{line} --out run")
    assert resumed.code == 0, resumed.err
    assert "epoch 1 of 3" in resumed.err
    assert same_weights(workplace / "straight", workplace / "run")
    kept = [
        [{k: v for k, v in json.loads(row).items() if k != "seconds"} for row in path.read_text().splitlines()]
        for path in (workplace / "straight" / "epochs.jsonl", workplace / "run" / "epochs.jsonl")
    ]
    assert kept[0] == kept[1]


def test_a_run_that_is_unfinished_or_at_chance_is_named_before_it_is_certified(typed: Typed, workplace: Path) -> None:
    typed(f"train {QUICK} --lr 1e-9 --out runs/empty")
    done = typed("certify --n 100 --max 1")
    assert "taking the newest run, runs/empty" in done.err
    assert "warning: runs/empty is hardly better than guessing" in done.err
    assert "unfinished" not in done.err
    process = start("train --dataset digits --arch lenet --epochs 60 --out runs/half", workplace)
    while not (workplace / "runs" / "half" / "epochs.jsonl").exists():
        time.sleep(0.05)
    process.kill()
    process.communicate()
    for model in ("", "runs/half", "runs/half/model.pt"):
        assert "warning: runs/half is unfinished, after " in typed(f"certify {model} --n 100 --max 1 --dry-run").err
    typed("train --dataset digits --arch lenet --epochs 3 --out runs/good")
    assert "warning" not in typed("certify runs/good --n 100 --max 1").err


def test_a_recipe_scaled_to_few_epochs_says_where_the_rate_drops(typed: Typed, workplace: Path) -> None:
    images = np.zeros((20, 28, 28), np.uint8)
    np.savez("m.npz", x_train=images, y_train=np.arange(20) % 10, x_test=images, y_test=np.arange(20) % 10)
    done = typed("train --dataset mnist --data m.npz --sigma 0.5 --epochs 15 --dry-run --json")
    assert "the recipe is for 90 epochs; scaled to 15: milestones 5 and 10" in done.err
    assert done.json()["settings"]["milestones"] == [5, 10]


def test_training_starts_from_weights_and_keeps_checkpoints(typed: Typed, trained: Path, workplace: Path) -> None:
    shown = typed(f"train --init {trained} --sigma 0.5 --dry-run")
    assert shown.code == 0, shown.err
    assert "become robust by: --method gaussian --recipe finetune" in shown.err
    line = f"train --init {trained} --recipe finetune --epochs 4 --limit 100 --lr-layers 0.1 --keep-every 2 --out tuned"
    done = typed(line)
    assert done.code == 0, done.err
    assert f"starting from {trained}/model.pt (lenet, trained by gaussian)" in done.err
    assert "replaced" not in done.err
    kept = ["model-epoch002.pt", "model-epoch004.pt"]
    assert sorted(path.name for path in (workplace / "tuned").glob("model-*.pt")) == kept
    assert load_model(workplace / "tuned" / kept[0]).info.epochs == 2
    settings = json.loads((workplace / "tuned" / "settings.json").read_text())["settings"]
    assert (settings["schedule"], settings["lr_layers"]) == ("cosine", 0.1)
    assert settings["init_sha256"] == load_model(trained).sha256
    assert settings["data"].startswith("100 images")
    assert "is finished" in typed(line).err
    refused = typed(line.replace("--lr-layers 0.1", "--freeze"))
    assert refused.code == 2
    assert "lr_layers 0.1 in file, 0" in refused.err
    assert typed(f"{line} --overwrite --keep-every 3").code == 0
    assert [path.name for path in (workplace / "tuned").glob("model-*.pt")] == ["model-epoch003.pt"]


def test_weights_of_other_code_start_a_network_for_other_classes(typed: Typed, shared: Path, workplace: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (20, 32, 32, 3), dtype=np.uint8)
    np.savez("c.npz", x_train=images, y_train=np.arange(20) % 3, x_test=images, y_test=np.arange(20) % 3)
    file = shared / "data" / "checkpoints" / "legacy_r20_sigma0.25.pth.tar"
    done = typed(f"train --dataset npz --data c.npz --init {file} --recipe finetune --epochs 1 --out run")
    assert done.code == 0, done.err
    assert "its head is for 10 classes and was replaced (" in done.err
    assert load_model("run").info.mean == pytest.approx([0.4914, 0.4822, 0.4465])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("--init nowhere", "there is no model at nowhere"),
        ("--init {trained} --arch resnet20", "which cannot start resnet20"),
        ("--recipe best", "has no such recipe for digits; it has finetune"),
        ("--lr-layers 2", "--lr-layers"),
        ("--limit 0", "--limit"),
    ],
)
def test_what_cannot_start_is_one_line(typed: Typed, trained: Path, workplace: Path, wrong: str, message: str) -> None:
    done = typed(f"train --epochs 1 {wrong.format(trained=trained)} --out run")
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err


def test_the_whole_road_of_imagenet_on_ten_real_images(typed: Typed, shared: Path, workplace: Path) -> None:
    sample = np.load(shared / "data" / "imagenet_sample_100x224.npz")
    for image, name in list(zip(sample["images"], sample["filenames"], strict=True))[::10]:
        for split, side in (("train", 96), ("val", 80)):
            folder = workplace / "imagenet" / split / str(name).split("_")[0]
            folder.mkdir(parents=True)
            Image.fromarray(image).resize((side, side)).save(folder / "a.png")
    done = typed(
        "train --dataset imagenet --data imagenet --size 64 --arch resnet18 --epochs 1 --batch-size 5 --lr 0.01 "
        "--out run"
    )
    assert done.code == 0, done.err
    done = typed("certify run --data imagenet --split val --n0 10 --n 50 --max 2")
    assert done.code == 0, done.err
    assert typed(f"predict run {next((workplace / 'imagenet' / 'val').rglob('*.png'))} --n 50").code == 0
    assert typed("report run").code == 0


def test_recipes_are_listed_by_name_with_their_source(typed: Typed) -> None:
    shown = typed("plugins gaussian").out.splitlines()
    (cohen,) = [line for line in shown if line.startswith("  recipe cohen2019: dataset=cifar10")]
    assert {"epochs=90", "batch_size=400"} <= set(cohen.split(" (")[0].split(", "))
    assert cohen.endswith("(Cohen et al. 2019, code; sigma 0.12, 0.25, 0.5, 1)")
    assert any("by_arch={'vit': {'lr': 0.01}}" in line for line in typed("plugins smoothmix").out.splitlines())
