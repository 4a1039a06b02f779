"""What every architecture and every dataset must do; a new plugin joins by being registered."""

from __future__ import annotations

import dataclasses
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from smoothctl import certify
from smoothctl.base.draws import Draws
from smoothctl.base.errors import UsageError
from smoothctl.hooks.datasets import ArrayImages, Dataset
from smoothctl.hooks.registry import Registered, registry
from smoothctl.images.datasets import describe_dataset, open_dataset, pixels
from smoothctl.models.checkpoint import load_model
from smoothctl.models.classifier import build_classifier, sketch_network
from smoothctl.testing import check_architecture, check_dataset, check_method, check_noise
from smoothctl.training.batches import TrainingData
from smoothctl.training.execution import Execution
from smoothctl.training.run import fill_directory
from smoothctl.training.settings import TrainSettings
from smoothctl.training.trainer import Trainer

CPU = torch.device("cpu")
# A family without an example is made from files only, and has tests of its own.
ARCHITECTURES = [e for e in registry().all("architecture") if e.value.example or not e.name.endswith("/")]
FAMILIES = list({entry.source: entry for entry in reversed(ARCHITECTURES)}.values())
DATASETS = registry().all("dataset")

# Published counts: reference models of the CRT, MACER, consistency and Wide ResNet papers, and torchvision.
COUNTS = {
    ("resnet20", 10): (272_474, 128),
    ("resnet110", 10): (1_730_714, 668),
    ("imagenet32_resnet110", 1000): (1_795_064, 668),
    ("densenet40", 10): (211_978, 224),
    ("resnext29_2x64d", 10): (9_128_778, 188),
    ("dla", 10): (16_291_386, 260),
    ("regnetx_200mf", 10): (2_321_946, 266),
    ("vit", 10): (12_470_026, 120),
    ("resnet18", 1000): (11_689_512, 122),
    ("resnet50", 1000): (25_557_032, 320),
    ("regnetx_040", 1000): (22_118_248, 446),
    ("lenet", 10): (431_080, 8),
    ("wideresnet28_10", 10): (36_479_194, None),
    ("wideresnet34_10", 10): (46_160_474, None),
    ("resnet20a", 10): (269_722, None),
    ("resnet110a", 10): (1_727_962, None),
}


def home(entry: Registered) -> Dataset:
    """The dataset of an architecture's published files, else the digits."""
    found: Dataset = registry().find("dataset", entry.value.dataset or "digits").value
    return describe_dataset(found)


def member(entry: Registered) -> str:
    return entry.name + entry.value.example


def shape_of(entry: Registered) -> tuple[int, int, int]:
    shape = home(entry).shape
    assert shape
    return shape


@pytest.mark.parametrize("entry", ARCHITECTURES, ids=lambda entry: entry.name)
def test_an_architecture_trains_saves_loads_and_certifies(entry: Registered, tmp_path: Path) -> None:
    dataset = home(entry)
    channels, height, width = shape_of(entry)
    rng = np.random.default_rng(0)
    array = rng.integers(0, 256, (2, height, width, channels), np.uint8)
    images = ArrayImages(array, np.array([0, 1]), dataset.class_names)
    arch = member(entry)
    settings = TrainSettings(
        arch=arch, dataset=dataset.name, epochs=1, batch_size=2, lr=0.001, momentum=0, augment=False, sigma=0.25
    )
    (line,) = fill_directory(settings, TrainingData(dataset, images, images, 1), tmp_path / "run", Execution(CPU))
    assert np.isfinite(line["loss"])
    model = load_model(tmp_path / "run")
    assert (model.info.arch, model.info.input_shape) == (arch, (channels, height, width))
    x = torch.stack([pixels(images, index) for index in range(2)])
    with torch.no_grad():
        logits = model.classifier(x[:1])
    assert logits.shape == (1, len(dataset.class_names))
    assert torch.isfinite(logits).all()
    (certificate,) = certify(model.classifier, x[:1], sigma=0.25, n0=1, n=4, alpha=0.1, batch_size=4)
    assert certificate.radius >= 0


@pytest.mark.parametrize("entry", [e for e in FAMILIES if shape_of(e)[1] <= 32], ids=lambda entry: entry.name)
def test_an_architecture_for_small_images_keeps_the_contract(entry: Registered) -> None:
    check_architecture(entry.value, shape_of(entry))


@pytest.mark.parametrize(("arch", "classes"), COUNTS)
def test_counts_are_those_that_were_published(arch: str, classes: int) -> None:
    entry = registry().find("architecture", arch)
    network = sketch_network(entry, classes, shape_of(entry))
    assert network is not None
    parameters, keys = COUNTS[arch, classes]
    assert sum(parameter.numel() for parameter in network.parameters()) == parameters
    assert keys in (None, len(network.state_dict()))


@pytest.mark.parametrize("entry", [e for e in ARCHITECTURES if not e.name.endswith("/")], ids=lambda e: e.name)
def test_no_two_architectures_have_the_same_weights(entry: Registered) -> None:
    """So that a state dict decides which it is."""
    own = signature(entry)
    same = [other.name for other in ARCHITECTURES if not other.name.endswith("/") and signature(other) == own]
    assert same == [entry.name]


SIGNATURES: dict[str, dict[str, Any]] = {}


def signature(entry: Registered) -> dict[str, Any]:
    if entry.name not in SIGNATURES:
        network = sketch_network(entry, 10, shape_of(entry))
        assert network is not None
        SIGNATURES[entry.name] = {key: tuple(value.shape) for key, value in network.state_dict().items()}
    return SIGNATURES[entry.name]


@pytest.mark.parametrize("entry", [e for e in ARCHITECTURES if e.value.options is not None], ids=lambda e: e.name)
def test_an_unknown_option_is_refused(entry: Registered) -> None:
    with pytest.raises(UsageError, match="has no option 'bogus'"):
        build_classifier(entry.name, 10, shape_of(entry), {"bogus": "1"})


@pytest.mark.parametrize("entry", FAMILIES, ids=lambda entry: entry.name)
@pytest.mark.parametrize("shape", [(1, 8, 8), (1, 28, 28)], ids=str)
def test_an_architecture_runs_on_small_images_or_says_why_not(entry: Registered, shape: tuple[int, int, int]) -> None:
    refusal = ""
    try:
        network = build_classifier(member(entry), 10, shape)
    except UsageError as error:
        refusal = str(error)
    if refusal:
        assert "\n" not in refusal
        assert str(shape[1]) in refusal
    else:
        assert network.eval()(torch.zeros(1, *shape)).shape == (1, 10)


@pytest.mark.parametrize("entry", DATASETS, ids=lambda entry: entry.name)
def test_a_dataset_is_described_and_downloads_nothing_unasked(
    entry: Registered, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import socket

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.chdir(tmp_path)
    dataset: Dataset = entry.value
    if dataset.name == "digits":
        check_dataset(dataset)
        return
    for place in (None, tmp_path):
        for split in dataset.splits or ("test",):
            with pytest.raises(UsageError) as caught:
                open_dataset(dataset, split, place)
            assert "`data" in str(caught.value) or str(tmp_path) in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("entry", DATASETS, ids=lambda entry: entry.name)
def test_a_dataset_opens_from_arrays(entry: Registered, tmp_path: Path) -> None:
    shape = entry.value.shape or (3, 16, 16)
    images = np.zeros((2, shape[1], shape[2], shape[0]), np.uint8)
    split = (entry.value.splits or ("test",))[-1]
    names = np.array([f"class{number}" for number in range(200)])
    arrays = {f"{split}_images": images, f"{split}_labels": np.array([0, 1]), "class_names": names}
    np.savez(tmp_path / "a.npz", **arrays)
    check_dataset(dataclasses.replace(entry.value, splits=(split,)), tmp_path / "a.npz")
    known, source = open_dataset(entry.value, split, tmp_path / "a.npz")
    assert known.shape == shape
    assert known.class_names
    x = pixels(source, 0)
    assert tuple(x.shape) == shape


def test_every_recipe_names_an_architecture_that_runs_on_its_dataset() -> None:
    for entry in DATASETS:
        recipe = entry.value.recipe
        if "arch" in recipe.settings and entry.name != "imagenet":
            build_classifier(recipe.settings["arch"], 10, entry.value.shape)


def test_a_new_dataset_needs_few_lines(tmp_path: Path) -> None:
    """A dataset whose names and shape are known only once it is opened."""
    from smoothctl import class_folders

    for name in ("b", "a"):
        (tmp_path / name).mkdir()
        Image.new("L", (5, 4)).save(tmp_path / name / "x.png")
    mine = Dataset("mine", lambda split, data, download: class_folders(data or tmp_path))
    known, images = open_dataset(mine, "test", tmp_path)
    assert (known.shape, known.class_names) == ((1, 4, 5), ("a", "b"))
    assert dataclasses.asdict(known)["mean"] == ()
    assert len(images) == 2


def test_no_warning_escapes() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build_classifier("torchvision/squeezenet1_1", 10, (3, 32, 32))


@pytest.mark.parametrize("entry", registry().all("method"), ids=lambda entry: entry.name)
def test_a_method_trains_by_its_loss_and_describes_its_options(entry: Registered, trained: Path) -> None:
    dataset = registry().find("dataset", "digits").value
    images = dataset.load("train", None, False)
    few = ArrayImages(images.images[:64], images.labels[:64])
    teacher = load_model(trained) if entry.value.needs_teacher else None
    settings = TrainSettings(method=entry.name, arch="lenet", epochs=1, batch_size=32, lr=0.01)
    trainer = Trainer(settings, TrainingData(dataset, few, few), Execution(CPU), teacher)
    before = [parameter.detach().clone() for parameter in trainer.model.parameters()]
    first, second = (trainer.run_epoch(epoch, lambda *_: None) for epoch in (0, 1))
    assert np.isfinite([first["loss"], second["loss"]]).all()
    moved = [not torch.equal(old, new) for old, new in zip(before, trainer.model.parameters(), strict=True)]
    assert all(moved)
    check_method(entry.value)


@pytest.mark.parametrize("entry", registry().all("noise"), ids=lambda entry: entry.name)
def test_a_noise_is_drawn_by_its_key_and_proves_rising_radii(entry: Registered) -> None:
    noise = entry.value
    first, again, other = (noise.sample((7, 3, 4, 4), 0.5, Draws(0, key)) for key in (1, 1, 2))
    assert first.shape == (7, 3, 4, 4)
    assert first.dtype == torch.float32
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    check_noise(noise)
    own = noise.at((1, 4, 4))
    radii = [own.radius(p, 0.5) for p in (0.5, 0.6, 0.9, 0.999)]
    assert radii == sorted(radii)
    assert radii[0] >= 0
    assert noise.norm in ("l0", "l1", "l2", "linf")
    if noise.apply is None:
        small, large = (noise.sample((1000, 1, 4, 4), sigma, Draws(0, 3)) for sigma in (0.5, 1.0))
        torch.testing.assert_close(2 * small, large)
        assert noise.radius(0.9, 1.0) == pytest.approx(2 * noise.radius(0.9, 0.5))
