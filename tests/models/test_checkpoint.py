"""Model files: our own, and those of other code, read whole or not at all and never run."""

from __future__ import annotations

import argparse
import os
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from smoothctl.base.errors import SmoothctlError, UsageError
from smoothctl.cli import run
from smoothctl.hooks.datasets import Dataset
from smoothctl.hooks.registry import registry
from smoothctl.models.checkpoint import Model, load_model, save_model
from smoothctl.models.classifier import build_classifier
from smoothctl.models.import_checkpoint import Assumptions

CIFAR_MEAN, CIFAR_STD = [0.4914, 0.4822, 0.4465], [0.2023, 0.1994, 0.2010]
Saved = dict[str, torch.Tensor]


@pytest.fixture(scope="module")
def resnet20() -> nn.Module:
    torch.manual_seed(0)
    network = build_classifier("resnet20", 10, (3, 32, 32)).network
    network(torch.rand(8, 3, 32, 32))
    return network.eval()


@pytest.fixture(scope="module")
def weights(resnet20: nn.Module) -> Saved:
    return dict(resnet20.state_dict())


def prefixed(state: Saved, prefix: str) -> Saved:
    return {prefix + key: value for key, value in state.items()}


def store(path: Path, content: Any) -> Path:
    torch.save(content, path)
    return path


def dataset(name: str) -> Dataset:
    found: Dataset = registry().find("dataset", name).value
    return found


def logits(model: Model, x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return model.classifier(x)


def test_the_legacy_checkpoint_gives_the_logits_beside_it(shared: Path) -> None:
    model = load_model(shared / "data/checkpoints/legacy_r20_sigma0.25.pth.tar")
    expected = np.load(shared / "data/checkpoints/legacy_r20_sigma0.25_logits.npz")
    x = torch.from_numpy(expected["images"]).movedim(-1, 1).float() / 255
    np.testing.assert_allclose(logits(model, x).numpy(), expected["logits"], atol=1e-5)
    assert (model.info.arch, model.info.dataset, model.info.sigma) == ("resnet20", "cifar10", None)


def test_a_strangers_resnet_with_option_a_is_recognised_and_right(shared: Path) -> None:
    file = shared / "data/checkpoints/akamaster_resnet20-12fca82f.th"
    images = np.load(shared / "data/cifar10_10k.npz")
    model = load_model(file, given=Assumptions(normalize="0.485,0.456,0.406,0.229,0.224,0.225"))
    assert model.info.arch == "resnet20a"
    x = torch.from_numpy(images["test_images"][:256]).movedim(-1, 1).float() / 255
    right = (logits(model, x).argmax(dim=1).numpy() == images["test_labels"][:256]).mean()
    assert right > 0.88  # 91.7 % on all 10,000


def test_a_strangers_bare_mnist_net_is_recognised_and_right(shared: Path) -> None:
    model = load_model(shared / "data/checkpoints/advertorch_mnist_lenet5_clntrained.pt")
    images = np.load(shared / "data/mnist.npz")
    x = torch.from_numpy(images["x_test"][:500]).movedim(-1, 1).float() / 255
    right = (logits(model, x).argmax(dim=1).numpy() == images["y_test"][:500]).mean()
    assert (model.info.arch, model.info.dataset) == ("lenet5", "mnist")
    assert right > 0.97  # 98.9 % on all 10,000


def test_a_list_of_state_dicts_is_refused_in_one_line(shared: Path, capsys: pytest.CaptureFixture) -> None:
    file = shared / "data/checkpoints/convexadv_models_scaled_l2_cifar_small_36px.pth"
    assert run(["certify", str(file), "--sigma", "0.25"]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "state_dict: list of 2" in error


LAYOUTS: dict[str, Any] = {
    "cohen": lambda w: {"epoch": 90, "arch": "cifar_resnet20", "state_dict": prefixed(w, "1."), "optimizer": {}},
    "cohen, several GPUs": lambda w: {"epoch": 90, "arch": "resnet20", "state_dict": prefixed(w, "1.module.")},
    "crt": lambda w: {"epoch": 0, "state_dict": prefixed(w, "1."), "optimizer": {}, "scheduler": {"last_epoch": 3}},
    "crt, several GPUs": lambda w: {"epoch": 0, "state_dict": prefixed(w, "1.module."), "optimizer": {}},
    "first layer with means": lambda w: {
        "state_dict": {
            "0.means": torch.tensor(CIFAR_MEAN),
            "0.sds": torch.tensor(CIFAR_STD),
            **prefixed(w, "1.module."),
        }
    },
    "compiled": lambda w: {"model": {**prefixed(w, "_orig_mod.1.")}},
    "compiled and parallel": lambda w: {"model": {**prefixed(w, "module._orig_mod.1.")}},
    "numpy scalars": lambda w: {
        "arch": "resnet20", "acc": np.float64(81.2), "best": np.float32(0.5), "steps": np.int64(3),
        "state_dict": prefixed(w, "1."), "args": argparse.Namespace(lr=0.1),
    },
    "arch among the arguments": lambda w: {"args": argparse.Namespace(arch="resnet20"), "net": prefixed(w, "1.")},
    "without counters": lambda w: {"state_dict": {k: v for k, v in prefixed(w, "1.").items() if "tracked" not in k}},
    "ordered": lambda w: OrderedDict(prefixed(w, "1.")),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same_logits(layout: str, resnet20: nn.Module, weights: Saved, tmp_path: Path) -> None:
    model = load_model(store(tmp_path / "old.pth.tar", LAYOUTS[layout](weights)))
    x = torch.rand(4, 3, 32, 32)
    normal = (x - torch.tensor(CIFAR_MEAN).view(-1, 1, 1)) / torch.tensor(CIFAR_STD).view(-1, 1, 1)
    with torch.no_grad():
        torch.testing.assert_close(logits(model, x), resnet20(normal), atol=1e-5, rtol=1e-5)
    assert model.info.arch == "resnet20"


@pytest.mark.parametrize(
    "content",
    [
        lambda w: {"net": w, "epoch": 440},
        lambda w: {"net": prefixed(w, "module."), "epoch": 440},
        lambda w: w,
        lambda w: prefixed(w, "_orig_mod."),
        lambda w: prefixed(w, "module."),
    ],
)
def test_a_file_without_a_first_layer_takes_pixels_as_they_are(
    content: Any, resnet20: nn.Module, weights: Saved, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    file = store(tmp_path / "macer.pth", content(weights))
    x = torch.rand(4, 3, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(logits(load_model(file), x), resnet20(x))
    said = capsys.readouterr().err
    assert "resnet20" in said
    assert "pixels in [0,1] go straight in" in said
    assert "`normalize=" in said


@pytest.mark.parametrize(
    ("normalize", "mean", "std"),
    [
        ("none", [0.0] * 3, [1.0] * 3),
        ("cifar10", CIFAR_MEAN, CIFAR_STD),
        ("center", CIFAR_MEAN, [1.0] * 3),
        ("0.5,0.25", [0.5] * 3, [0.25] * 3),
        ("0.1,0.2,0.3,1,2,3", [0.1, 0.2, 0.3], [1.0, 2.0, 3.0]),
    ],
)
def test_the_input_layer_can_be_said(
    normalize: str, mean: list[float], std: list[float], weights: Saved, tmp_path: Path
) -> None:
    model = load_model(store(tmp_path / "a.pt", prefixed(weights, "1.")), given=Assumptions(normalize=normalize))
    assert model.info.mean == pytest.approx(mean)
    assert model.info.std == pytest.approx(std)


@pytest.mark.parametrize(
    ("normalize", "words"), [("cifar11", "cifar10"), ("1,2,3", "2 numbers"), ("0,0", "above 0"), ("nan,1", "finite")]
)
def test_nonsense_input_layers_are_refused(normalize: str, words: str, weights: Saved, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=words):
        load_model(store(tmp_path / "a.pt", weights), given=Assumptions(normalize=normalize))


def test_constants_kept_in_the_file_are_used(weights: Saved, tmp_path: Path) -> None:
    content = {"0.mean": torch.tensor([[[[0.1]], [[0.2]], [[0.3]]]]), **prefixed(weights, "1.")}
    info = load_model(store(tmp_path / "a.pt", content)).info
    assert info.mean == pytest.approx([0.1, 0.2, 0.3])
    assert info.std == [1.0, 1.0, 1.0]


def test_two_files_with_the_same_keys_keep_their_own_preprocessing(weights: Saved, tmp_path: Path) -> None:
    old = store(tmp_path / "old.pt", prefixed(weights, "1."))
    found = {}
    for how in ("center", "cifar10"):
        new = tmp_path / f"{how}.pt"
        assert run(["convert", str(old), str(new), "--sigma", "0.25", "--normalize", how]) == 0
        found[how] = load_model(new).info
    assert found["center"].std == [1.0] * 3
    assert found["cifar10"].std == pytest.approx(CIFAR_STD)


def test_weights_under_names_that_do_not_fit_are_never_left_random(weights: Saved, tmp_path: Path) -> None:
    half = {("other." if key.startswith("layer") else "") + key: value for key, value in weights.items()}
    file = store(tmp_path / "a.pt", {"arch": "resnet20", "state_dict": half})
    with pytest.raises(SmoothctlError, match=r"8 of 128 tensors matched.*other\.") as caught:
        load_model(file)
    assert "\n" not in str(caught.value)
    with pytest.raises(SmoothctlError, match="8 of 128 tensors matched"):
        load_model(file, given=Assumptions(arch="resnet20"))


def test_every_missing_and_extra_tensor_stops_it(weights: Saved, tmp_path: Path) -> None:
    less = {key: value for key, value in weights.items() if key != "fc.bias"}
    with pytest.raises(SmoothctlError, match=r"1 missing, such as fc\.bias"):
        load_model(store(tmp_path / "a.pt", less), given=Assumptions(arch="resnet20"))
    more = {**weights, "extra.weight": torch.zeros(2)}
    with pytest.raises(SmoothctlError, match=r"1 left over, such as extra\.weight"):
        load_model(store(tmp_path / "b.pt", more), given=Assumptions(arch="resnet20"))
    other = {**weights, "conv1.weight": torch.zeros(16, 1, 3, 3)}
    with pytest.raises(SmoothctlError, match=r"conv1\.weight \(16, 1, 3, 3\) instead of \(16, 3, 3, 3\)"):
        load_model(store(tmp_path / "c.pt", other), given=Assumptions(arch="resnet20"))


class RunsCode:
    """What pickle would execute when it is loaded carelessly."""

    def __init__(self, proof: Path):
        self.proof = proof

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.proof),)


@pytest.mark.parametrize("where", ["beside", "instead", "whole module"])
def test_files_that_would_run_code_are_refused_in_one_line(
    where: str, resnet20: nn.Module, weights: Saved, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    proof = tmp_path / "proof"
    content = {
        "beside": {"arch": "resnet20", "state_dict": weights, "extra": RunsCode(proof)},
        "instead": RunsCode(proof),
        "whole module": resnet20,
    }[where]
    file = store(tmp_path / "evil.pt", content)
    assert run(["certify", str(file), "--sigma", "0.25"]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "could run code, so it is refused" in error
    assert not proof.exists()


def test_several_state_dicts_are_asked_about(weights: Saved, tmp_path: Path) -> None:
    file = store(tmp_path / "a.pt", {"state_dict": weights, "ema": {"deep": prefixed(weights, "1.")}, "model": weights})
    with pytest.raises(SmoothctlError, match=r"a\.pt: found weights under the keys state_dict, model.*`state_key="):
        load_model(file)
    assert load_model(file, given=Assumptions(state_key="ema.deep")).info.arch == "resnet20"
    with pytest.raises(UsageError, match=r"has no 'deeper' \(found top-level keys: deep"):
        load_model(file, given=Assumptions(state_key="ema.deeper"))


@pytest.mark.parametrize("content", [{}, {"epoch": 3}, [1, 2], torch.zeros(3)])
def test_files_without_weights_are_refused(content: Any, tmp_path: Path) -> None:
    with pytest.raises(SmoothctlError, match="holds no state dict"):
        load_model(store(tmp_path / "a.pt", content))


def test_files_of_other_kinds_are_refused(tmp_path: Path) -> None:
    for name, content in (("a.pt", b""), ("b.pt", b"hello"), ("c.safetensors", b"hello"), ("d.pt", b"PK\x03\x04zip")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(SmoothctlError) as caught:
            load_model(tmp_path / name)
        assert "\n" not in str(caught.value)


def test_what_the_file_does_not_say_is_asked_for(weights: Saved, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    file = store(tmp_path / "a.pt", prefixed(weights, "1."))
    np.savez(tmp_path / "c.npz", test_images=np.zeros((2, 32, 32, 3), np.uint8), test_labels=np.arange(2))
    assert run(["certify", str(file), "--data", str(tmp_path / "c.npz")]) == 2
    assert "give --sigma" in capsys.readouterr().err
    assert run(["convert", str(file), str(tmp_path / "new.pt")]) == 2
    assert "give --sigma" in capsys.readouterr().err
    assert not (tmp_path / "new.pt").exists()
    stranger = store(tmp_path / "b.pt", {"conv.weight": torch.zeros(4, 3, 3, 3), "fc.weight": torch.zeros(10, 4)})
    assert run(["certify", str(stranger), "--sigma", "0.25"]) == 2
    assert "names no architecture" in capsys.readouterr().err


def test_a_head_of_another_size_is_named(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    network = build_classifier("resnet20", 1000, (3, 32, 32)).network
    file = store(
        tmp_path / "a.pt", {"arch": "cifar_resnet20", "state_dict": prefixed(dict(network.state_dict()), "1.")}
    )
    assert run(["certify", str(file), "--sigma", "0.25", "--dataset", "cifar10"]) == 2
    assert "has 1000 classes, dataset cifar10 has 10" in capsys.readouterr().err


@pytest.mark.parametrize("ending", ["pt", "safetensors"])
def test_convert_writes_our_format_with_everything_on_record(
    ending: str, resnet20: nn.Module, weights: Saved, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    old = store(
        tmp_path / "old.pth.tar", {"epoch": 90, "arch": "cifar_resnet20", "state_dict": prefixed(weights, "1.")}
    )
    new = tmp_path / f"new.{ending}"
    command = ["convert", str(old), str(new), "--sigma", "0.25"]
    assert run(command) == 0
    info = load_model(new).info
    assert (info.arch, info.dataset, info.sigma, info.epochs) == ("resnet20", "cifar10", 0.25, 90)
    assert info.class_names[:2] == ["airplane", "automobile"]
    assert info.origin is not None
    assert info.origin.file == "old.pth.tar"
    x = torch.rand(2, 3, 32, 32)
    assert torch.equal(logits(load_model(new), x), logits(load_model(old), x))
    capsys.readouterr()
    before = new.read_bytes()
    assert run(command) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert new.read_bytes() == before
    assert run([*command, "--overwrite"]) == 0


def test_a_safetensors_file_of_other_code_is_read(weights: Saved, tmp_path: Path) -> None:
    from safetensors.torch import save_file

    save_file(prefixed(weights, "1."), tmp_path / "a.safetensors")
    assert load_model(tmp_path / "a.safetensors").info.arch == "resnet20"


def test_our_files_say_all_of_it_themselves(trained: Path, capsys: pytest.CaptureFixture) -> None:
    for flag, value in (("--normalize", "none"), ("--arch", "resnet20")):
        assert run(["certify", str(trained), flag, value, "--dry-run"]) == 2
        assert f"leave {flag} out" in capsys.readouterr().err


def test_our_files_are_whole_or_refused(trained: Path, tmp_path: Path) -> None:
    model = load_model(trained)
    state = dict(model.classifier.network.state_dict())
    state.pop("fc2.bias")
    save_model(tmp_path / "a.pt", model.info, state)
    with pytest.raises(SmoothctlError, match=r"does not fit its architecture lenet.*fc2\.bias"):
        load_model(tmp_path / "a.pt")


def test_a_foreign_teacher_teaches(weights: Saved, tmp_path: Path) -> None:
    teacher = store(tmp_path / "t.pth.tar", {"arch": "cifar_resnet20", "state_dict": prefixed(weights, "1.")})
    rng = np.random.default_rng(0)
    for split in ("train", "test"):
        arrays = {f"{split}_images": rng.integers(0, 256, (8, 32, 32, 3), np.uint8), f"{split}_labels": np.arange(8)}
        np.savez(tmp_path / f"{split}.npz", **arrays)
    both = {**np.load(tmp_path / "train.npz"), **np.load(tmp_path / "test.npz")}
    np.savez(tmp_path / "both.npz", **both)
    command = ["transfer", "--teacher", str(teacher), "--student", "lenet", "--data", str(tmp_path / "both.npz")]
    assert run([*command, "--epochs", "1", "--sigma", "0.25", "--out", str(tmp_path / "run")]) == 0
    (ancestor,) = load_model(tmp_path / "run").info.lineage
    assert (ancestor.arch, ancestor.sigma) == ("resnet20", None)
