"""Families, own modules, ensembles and denoisers from the command line: train, certify, predict."""

from __future__ import annotations

import csv
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from smoothctl.cli import run
from smoothctl.cli.outcomes import own_code
from smoothctl.models.checkpoint import load_model
from smoothctl.models.import_checkpoint import Assumptions

OWN = """
from torch import nn

def build(num_classes, width=4):
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, width), nn.ReLU(), nn.Linear(width, num_classes))

class Small(nn.Sequential):
    def __init__(self, spec):
        super().__init__(nn.Flatten(), nn.Linear(3 * 32 * 32, spec.num_classes))

def ten(width=4):
    return build(10, width)
"""


@pytest.fixture
def colour(tmp_path: Path) -> Path:
    """An .npz of 8 + 4 random 32x32 colour images in the shape of CIFAR-10."""
    rng = np.random.default_rng(0)
    arrays = {
        "train_images": rng.integers(0, 256, (8, 32, 32, 3), np.uint8),
        "train_labels": np.arange(8),
        "test_images": rng.integers(0, 256, (4, 32, 32, 3), np.uint8),
        "test_labels": np.arange(4),
    }
    np.savez(tmp_path / "colour.npz", **arrays)
    return tmp_path / "colour.npz"


def train(arch: str, data: Path, out: Path, *more: str, dataset: str = "cifar10") -> Path:
    command = ["train", "--arch", arch, "--dataset", dataset, "--data", str(data), "--out", str(out), "--epochs", "1"]
    assert run([*command, "--lr", "0.001", "--batch-size", "4", "--sigma", "0.25", *more]) == 0
    return out


def certify(model: Path, data: Path, out: Path, *more: str) -> list[dict[str, str]]:
    command = ["certify", str(model), "--data", str(data), "--n0", "2", "--n", "20", "--alpha", "0.01", "--max", "2"]
    assert run([*command, "--batch-size", "22", "--out", str(out), *more]) == 0
    with out.open() as handle:
        rows = list(csv.DictReader(handle, delimiter="\t"))
    assert len(rows) == 2
    assert all(row["status"] == "ok" for row in rows)
    return rows


def predict(model: Path, image: Path, capsys: pytest.CaptureFixture, *more: str) -> str:
    Image.fromarray(np.random.default_rng(1).integers(0, 256, (40, 50, 3), np.uint8)).save(image)
    capsys.readouterr()
    assert run(["predict", str(model), str(image), "--n", "20", "--alpha", "0.01", *more]) == 0
    return str(capsys.readouterr().out)


@pytest.mark.parametrize(
    "arch",
    [
        "timm/mobilenetv3_small_050",
        "timm/vit_tiny_patch16_224",
        "torchvision/squeezenet1_1",
        "ensemble/lenet+resnet20",
        "denoised/lenet",
    ],
)
def test_it_trains_certifies_and_predicts_on_32x32(
    arch: str, colour: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    out = train(arch, colour, tmp_path / "run")
    assert load_model(out).info.arch == arch
    certify(out, colour, tmp_path / "log.tsv")
    assert "votes of 20" in predict(out, tmp_path / "image.png", capsys)


def test_a_timm_model_on_224x224(shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    sample = np.load(shared / "data/imagenet_sample_100x224.npz")
    np.savez(tmp_path / "few.npz", images=sample["images"][:4], labels=sample["labels"][:4])
    data = tmp_path / "few.npz"
    out = train("timm/mobilenetv3_small_050", data, tmp_path / "run", dataset="imagenet")
    assert load_model(out).info.input_shape == (3, 224, 224)
    rows = certify(out, data, tmp_path / "log.tsv")
    assert [int(row["label"]) for row in rows] == sample["labels"][:2].tolist()
    assert "n0" in predict(out, tmp_path / "image.png", capsys)  # a WordNet id


def test_a_function_that_needs_nothing_is_called_so(colour: Path, tmp_path: Path) -> None:
    source = tmp_path / "mine.py"
    source.write_text(OWN)
    train(f"{source}:ten", colour, tmp_path / "run")


def test_weights_of_ones_own_network_are_a_start(colour: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    source = tmp_path / "mine.py"
    source.write_text(OWN)
    first = train(f"{source}:ten", colour, tmp_path / "first")
    converted = tmp_path / "model.pt"
    converted.write_bytes((first / "model.pt").read_bytes())
    for start in (first, converted):
        tuned = tmp_path / f"tuned-{start.stem}"
        train(f"{source}:ten", colour, tuned, "--init", str(start), "--recipe", "finetune")
        assert load_model(tuned, given=Assumptions(arch=f"{source}:ten")).info.arch == f"{source}:ten"
    assert run(["train", "--init", str(first), "--dataset", "cifar10", "--data", str(colour), "--out", "no"]) == 2
    assert "to run that code, say --arch" in capsys.readouterr().err


def test_a_file_of_ones_own(colour: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    source = tmp_path / "mine.py"
    source.write_text(OWN)
    arch = f"{source}:build"
    out = train(arch, colour, tmp_path / "run", "--arch-option", "width=6")
    model = load_model_of_ones_own(out, arch)
    assert model["1.weight"].shape == (6, 3072)
    certify(out, colour, tmp_path / "log.tsv", "--arch", arch)
    assert "votes" in predict(out, tmp_path / "image.png", capsys, "--arch", arch)
    capsys.readouterr()
    assert run(["certify", str(out), "--data", str(colour)]) == 2
    assert f"to run that code, say --arch {arch}" in capsys.readouterr().err


def load_model_of_ones_own(out: Path, arch: str) -> dict[str, torch.Tensor]:
    from smoothctl import Assumptions

    return dict(load_model(out, given=Assumptions(arch=arch)).classifier.network.state_dict())


def test_an_import_path_of_ones_own(
    colour: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    (tmp_path / "mypackage").mkdir()
    (tmp_path / "mypackage" / "__init__.py").write_text("")
    (tmp_path / "mypackage" / "nets.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(tmp_path))
    train("mypackage.nets:Small", colour, tmp_path / "run")
    for arch, words in (("mypackage.nets:nothing", "nothing callable"), ("no.such:build", "cannot be imported")):
        capsys.readouterr()
        assert run(["train", "--arch", arch, "--dataset", "cifar10", "--data", str(colour)]) == 2
        assert words in capsys.readouterr().err


def test_an_ensemble_of_checkpoints_averages_their_logits(colour: Path, tmp_path: Path) -> None:
    first = train("lenet", colour, tmp_path / "a", "--normalize", "none")
    second = train("resnet20", colour, tmp_path / "b")
    new = tmp_path / "both.pt"
    assert run(["convert", str(first), str(second), str(new)]) == 0
    x = torch.rand(3, 3, 32, 32)
    with torch.no_grad():
        mean = (load_model(first).classifier(x) + load_model(second).classifier(x)) / 2
        torch.testing.assert_close(load_model(new).classifier(x), mean)
    assert load_model(new).info.sigma == 0.25
    certify(new, colour, tmp_path / "log.tsv")
    again = tmp_path / "consensus.pt"
    assert run(["convert", str(first), str(second), str(again), "--arch-option", "consensus=2"]) == 0
    assert load_model(again).info.arch_options["consensus"] == "2"
    certify(again, colour, tmp_path / "consensus.tsv")
    assert run(["convert", str(first), str(second), str(tmp_path / "c.pt"), "--arch-option", "consensus=3"]) == 2


def test_a_denoiser_before_a_strangers_classifier(colour: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    clean = train("lenet", colour, tmp_path / "clean")
    pair = train(
        "denoised/lenet", colour, tmp_path / "pair",
        "--arch-option", f"classifier={clean}", "--arch-option", "depth=3", "--arch-option", "width=8", "--lr", "0.1",
    )  # fmt: skip
    trained = load_model(pair).classifier.network
    kept = load_model(clean).classifier
    assert all(
        torch.equal(value, trained.state_dict()[f"classifier.network.{key}"])
        for key, value in kept.network.state_dict().items()
    )
    front = {key[9:]: value for key, value in trained.state_dict().items() if key.startswith("denoiser.")}
    assert front["dncnn.5.weight"].abs().sum() > 0  # it started at 0, and was trained
    torch.save(
        {"epoch": 1, "arch": "cifar_dncnn", "state_dict": {f"module.{k}": v for k, v in front.items()}},
        tmp_path / "d.pt",
    )
    x = torch.rand(3, 3, 32, 32)
    new = tmp_path / "denoised.pt"
    assert run(["convert", str(clean), str(new), "--denoiser", str(tmp_path / "d.pt")]) == 0
    with torch.no_grad():
        expected = kept(trained.denoiser(x))  # type: ignore[operator]
        torch.testing.assert_close(load_model(new).classifier(x), expected)
        torch.testing.assert_close(load_model(pair).classifier(x), expected)
    certify(new, colour, tmp_path / "a.tsv")
    certify(clean, colour, tmp_path / "b.tsv", "--denoiser", str(tmp_path / "d.pt"), "--sigma", "0.25")
    assert (tmp_path / "a.tsv").read_text().splitlines()[1].split("\t")[2] == (
        tmp_path / "b.tsv"
    ).read_text().splitlines()[1].split("\t")[2]
    assert "votes" in predict(clean, tmp_path / "i.png", capsys, "--denoiser", str(tmp_path / "d.pt"))
    assert run(["certify", str(clean), "--data", str(colour), "--denoiser", str(clean / "model.pt")]) != 0


@pytest.mark.parametrize("arch", ["timm/resnet18", "torchvision/resnet18", "resnet18"])
def test_pretrained_weights_without_a_network_are_one_clear_line(
    arch: str, colour: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    block_network(monkeypatch, tmp_path)
    command = [
        "train",
        "--arch",
        arch,
        "--dataset",
        "cifar10",
        "--data",
        str(colour),
        "--arch-option",
        "pretrained=true",
    ]
    start = time.perf_counter()
    assert run([*command, "--out", str(tmp_path / "run")]) == 1
    assert time.perf_counter() - start < 15  # the hub's client alone tries for 45 s
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("smoothctl: pretrained weights of")
    assert "leave pretrained out" in error
    place = "models--timm--resnet18.a1_in1k into" if arch.startswith("timm") else "checkpoints/resnet18-f37072fd.pth"
    assert place in error


def test_torchvisions_weights_are_chosen_by_name(
    colour: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """A file of the right name in the cache stands for the published one."""
    from torchvision import models

    torch.manual_seed(0)
    published = models.squeezenet1_1().state_dict()
    file = tmp_path / "hub" / "checkpoints" / models.SqueezeNet1_1_Weights.DEFAULT.url.rpartition("/")[2]
    file.parent.mkdir(parents=True)
    torch.save(published, file)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setattr(torch.hub, "download_url_to_file", None)
    for asked in ("weights=DEFAULT", "weights=IMAGENET1K_V1", "pretrained=true"):
        out = tmp_path / asked
        train("torchvision/squeezenet1_1", colour, out, "--arch-option", asked, "--lr", "1e-9")
        state = load_model(out).classifier.network.state_dict()
        torch.testing.assert_close(state["features.0.weight"], published["features.0.weight"], atol=1e-4, rtol=0)
    capsys.readouterr()
    command = ["train", "--arch", "torchvision/squeezenet1_1", "--dataset", "cifar10", "--data", str(colour)]
    assert run([*command, "--arch-option", "weights=V9", "--out", str(tmp_path / "x")]) == 2
    assert "torchvision has no weights 'V9' of squeezenet1_1; it has IMAGENET1K_V1, DEFAULT" in capsys.readouterr().err


def test_timm_reads_no_file_by_itself(colour: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    command = ["train", "--arch", "timm/resnet18", "--dataset", "cifar10", "--data", str(colour)]
    option = f"checkpoint_path={tmp_path / 'other.pth'}"
    assert run([*command, "--arch-option", option, "--out", str(tmp_path / "x")]) == 2
    assert "timm would read a file by itself" in capsys.readouterr().err


def block_network(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    """No address resolves, and no cache has anything."""
    import socket

    def refuse(*_: object, **__: object) -> None:
        raise OSError("the network was used")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setenv("HF_HOME", str(cache))
    monkeypatch.setenv("TORCH_HOME", str(cache))


@pytest.mark.parametrize("arch", ["timm/resnet10t", "torchvision/squeezenet1_1", "resnet18"])
def test_a_local_checkpoint_makes_no_network_calls(
    arch: str, colour: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if its record says that it began from pretrained weights."""
    from smoothctl.models.checkpoint import save_model

    out = train(arch, colour, tmp_path / "run")
    model = load_model(out)
    info = model.info.model_copy(update={"arch_options": {"pretrained": "true"}})
    save_model(tmp_path / "local.pt", info, model.classifier.network.state_dict())
    block_network(monkeypatch, tmp_path)
    certify(tmp_path / "local.pt", colour, tmp_path / "log.tsv")


@pytest.mark.parametrize(
    ("arch", "words"),
    [
        ("resnet_19", "Did you mean"),
        ("mynet.py", "say which of its functions"),
        ("timm/", "It is a family: write timm/NAME"),
        ("timm/resnet_18", "timm has no model"),
        ("torchvision/resnet1234", "torchvision has"),
        ("timm/vit_tiny_patch16_224", "patches of 16x16, of which 8x8 is no multiple"),
        ("vit", "multiples of 8"),
    ],
)
def test_what_cannot_be_built_is_said_before_any_training(
    arch: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    dataset = "mnist" if arch == "vit" else "digits"
    np.savez(tmp_path / "m.npz", x_train=np.zeros((2, 28, 28), np.uint8), y_train=np.arange(2),
             x_test=np.zeros((2, 28, 28), np.uint8), y_test=np.arange(2))  # fmt: skip
    data = ["--data", str(tmp_path / "m.npz")] if arch == "vit" else []
    assert run(["train", "--arch", arch, "--dataset", dataset, *data, "--out", str(tmp_path / "run")]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert "Traceback" not in error


OWN_PARTS = """
from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from ownsibling import WIDTH

@dataclass
class Settings:
    width: int = WIDTH

def build(num_classes, **options):
    width = Settings(**options).width
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, width), nn.Linear(width, num_classes))
"""


def test_own_code_may_have_parts_beside_it_and_move(
    colour: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    (tmp_path / "ownpackage").mkdir()
    for name, text in (
        ("ownsibling.py", "WIDTH = 3\n"),
        ("ownpackage/__init__.py", ""),
        ("ownpackage/nets.py", OWN_PARTS),
    ):
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    made = train("ownpackage.nets:build", colour, tmp_path / "run", "--arch-option", "width=5")
    assert own_code("ownpackage.nets:build") == " --arch ownpackage.nets:build"
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for name in ("ownsibling.py", "ownpackage/nets.py"):
        (tmp_path / name).rename(moved / Path(name).name)
    certify(made, colour, tmp_path / "log.tsv", "--arch", f"{moved / 'nets.py'}:build")
    assert run(["certify", str(made), "--data", str(colour), "--max", "1"]) == 2
    assert "say --arch ownpackage.nets:build" in capsys.readouterr().err


def test_convert_refuses_what_a_file_says_otherwise_and_never_replaces_its_source(
    run_copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    model, new = str(run_copy / "model.pt"), str(tmp_path / "new.pt")
    for flags, words in (
        (["--sigma", "0.5"], "trained for sigma 0.25"),
        (["--dataset", "mnist"], "it is for digits"),
        (["--state-key", "foo"], "leave --state-key out"),
        (["--arch-option", "foo=1"], "leave --arch-option out"),
    ):
        assert run(["convert", model, new, *flags]) == 2
        assert words in capsys.readouterr().err
    before = (run_copy / "model.pt").read_bytes()
    assert run(["convert", model, model, "--overwrite"]) == 2
    assert (run_copy / "model.pt").read_bytes() == before
    assert not Path(new).exists()
