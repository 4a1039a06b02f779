"""Who writes what: checkpoints as libraries write them, each read with the command of docs/models.md's table."""

from __future__ import annotations

import argparse
import copy
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from smoothctl.base.errors import SmoothctlError, UsageError
from smoothctl.cli import run
from smoothctl.hooks.registry import registry
from smoothctl.models.checkpoint import load_model, save_model
from smoothctl.models.classifier import build_classifier
from smoothctl.models.import_checkpoint import Assumptions
from smoothctl.models.unwrapping import unwrap

State = dict[str, torch.Tensor]


@pytest.fixture(scope="module")
def network() -> nn.Module:
    torch.manual_seed(0)
    built = build_classifier("resnet20", 10, (3, 32, 32)).network
    built(torch.rand(8, 3, 32, 32))
    return built.eval()


def answers_alike(file: Path, network: nn.Module, **given: Any) -> str:
    """Load a file, check that its logits are the network's; the architecture's name."""
    model = load_model(file, given=Assumptions(normalize="none", **given))
    x = torch.rand(2, *model.info.input_shape)
    with torch.no_grad():
        torch.testing.assert_close(model.classifier(x), network(x), atol=1e-5, rtol=1e-5)
    return model.info.arch


def store(path: Path, content: Any) -> Path:
    torch.save(content, path)
    return path


def dataset(name: str) -> Any:
    return registry().find("dataset", name).value


# The libraries themselves


def test_lightning(network: nn.Module, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    lightning = pytest.importorskip("pytorch_lightning")

    class Wrapped(lightning.LightningModule):  # type: ignore[name-defined,misc]
        def __init__(self, inner: nn.Module, lr: float = 0.1, data: Path = Path("data")):
            super().__init__()
            self.save_hyperparameters(ignore=["inner"])
            self.model = inner

        def training_step(self, batch: Any, _: int) -> Any:
            return nn.functional.cross_entropy(self.model(batch[0]), batch[1])

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.0)

    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(torch.rand(2, 3, 32, 32), torch.tensor([0, 1])), batch_size=2
    )
    inner = copy.deepcopy(network)
    trainer = lightning.Trainer(
        max_steps=1, accelerator="cpu", logger=False, default_root_dir=tmp_path, enable_progress_bar=False
    )
    trainer.fit(Wrapped(inner), loader)
    trainer.save_checkpoint(tmp_path / "a.ckpt")
    assert answers_alike(tmp_path / "a.ckpt", inner.eval()) == "resnet20"
    assert "without model." in capsys.readouterr().err


def test_lightnings_layout_without_lightning(network: nn.Module, tmp_path: Path) -> None:
    for prefix in ("model.", "net.", "backbone.", "model.backbone."):
        content = {
            "epoch": 3, "global_step": 12, "pytorch-lightning_version": "2.4.0",
            "loops": {"fit_loop": {"state_dict": {}}},
            "state_dict": OrderedDict((prefix + key, value) for key, value in network.state_dict().items()),
            "callbacks": {"ModelCheckpoint": {"best_model_score": torch.tensor(0.5)}}, "optimizer_states": [],
            "lr_schedulers": [], "hparams_name": "kwargs", "hyper_parameters": {"lr": 0.1},
        }  # fmt: skip
        assert answers_alike(store(tmp_path / "a.ckpt", content), network) == "resnet20"


def test_timms_training_script(tmp_path: Path) -> None:
    import timm
    from timm.utils import CheckpointSaver, ModelEmaV3

    network = timm.create_model("resnet10t", num_classes=10).eval()
    arguments = argparse.Namespace(model="resnet10t", num_classes=10, output=Path("out"), lr=0.1)
    saver = CheckpointSaver(
        network, torch.optim.SGD(network.parameters(), 0.1), arguments, ModelEmaV3(network),
        checkpoint_dir=str(tmp_path), recovery_dir=str(tmp_path),
    )  # fmt: skip
    saver.save_checkpoint(3, 0.5)
    file = tmp_path / "last.pth.tar"
    with pytest.raises(UsageError, match="`state_key"):
        load_model(file)
    for key in ("state_dict", "state_dict_ema"):
        arch = answers_alike(file, network, arch="timm/resnet10t", state_key=key, dataset=dataset("cifar10"))
        assert arch == "timm/resnet10t"


def test_a_name_that_only_a_library_knows(tmp_path: Path) -> None:
    import timm

    network = timm.create_model("resnet10t", num_classes=10).eval()
    file = store(tmp_path / "a.pth.tar", {"epoch": 3, "arch": "resnet10t", "state_dict": network.state_dict()})
    with pytest.raises(UsageError, match=r"has 10 classes, dataset imagenet has 1000; give `dataset`"):
        load_model(file)
    assert answers_alike(file, network, dataset=dataset("cifar10")) == "timm/resnet10t"


def test_torchvisions_references(tmp_path: Path) -> None:
    from torch.optim.swa_utils import AveragedModel
    from torchvision import models

    network = models.resnet18(num_classes=10).eval()
    content = {
        "model": network.state_dict(), "optimizer": {}, "lr_scheduler": {"last_epoch": 3}, "epoch": 3,
        "args": argparse.Namespace(model="resnet18", lr=0.1), "model_ema": AveragedModel(network).state_dict(),
    }  # fmt: skip
    file = store(tmp_path / "checkpoint.pth", content)
    with pytest.raises(UsageError, match="`state_key"):
        load_model(file)
    for key in ("model", "model_ema"):
        assert answers_alike(file, network, state_key=key, dataset=dataset("cifar10")) == "resnet18"


def test_hugging_faces_hub(tmp_path: Path) -> None:
    """timm pushes ``model.safetensors`` and a description; transformers' TimmWrapper puts ``timm_model.`` before."""
    import timm
    from safetensors.torch import save_file

    network = timm.create_model("resnet10t", num_classes=10).eval()
    save_file(network.state_dict(), tmp_path / "model.safetensors", {"format": "pt"})
    prefixed = {f"timm_model.{key}": value for key, value in network.state_dict().items()}
    save_file(prefixed, tmp_path / "wrapped.safetensors", {"format": "pt"})
    torch.save(network.state_dict(), tmp_path / "pytorch_model.bin")
    for name in ("model.safetensors", "wrapped.safetensors", "pytorch_model.bin"):
        answers_alike(tmp_path / name, network, arch="timm/resnet10t", dataset=dataset("cifar10"))


def test_stochastic_weight_averaging_and_moving_averages(network: nn.Module, tmp_path: Path) -> None:
    from timm.utils import ModelEmaV2
    from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

    for made in (AveragedModel(network), AveragedModel(network, multi_avg_fn=get_ema_multi_avg_fn(0.9))):
        state = made.state_dict()
        assert "n_averaged" in state
        assert answers_alike(store(tmp_path / "a.pt", state), network) == "resnet20"
    assert answers_alike(store(tmp_path / "b.pt", ModelEmaV2(network).state_dict()), network) == "resnet20"


@pytest.mark.parametrize("wrap", [nn.DataParallel, torch.compile, lambda net: nn.DataParallel(torch.compile(net))])
def test_compiled_and_parallel(wrap: Any, network: nn.Module, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    model = load_model(store(tmp_path / "a.pt", wrap(network).state_dict()))
    assert model.info.arch == "resnet20"
    (warning,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning")]
    for choice in ("`normalize=none`", "`normalize=cifar10`", "`normalize=center`"):
        assert choice in warning


def test_sharded_training(network: nn.Module, tmp_path: Path) -> None:
    """FSDP's full state dict, from one process over gloo."""
    import torch.distributed as dist
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
    from torch.distributed.fsdp import fully_shard

    dist.init_process_group("gloo", init_method=f"file://{tmp_path / 'meet'}", rank=0, world_size=1)
    try:
        mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (1,))
        sharded = copy.deepcopy(network)
        fully_shard(sharded, mesh=mesh)
        state = get_model_state_dict(sharded, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
    finally:
        dist.destroy_process_group()
    assert answers_alike(store(tmp_path / "a.pt", state), network) == "resnet20"


class Tied(nn.Module):
    """Two layers that are one."""

    def __init__(self, num_classes: int = 10):
        super().__init__()
        self.first = nn.Linear(48, 48)
        self.second = nn.Linear(48, 48)
        self.second.weight = self.first.weight
        self.last = nn.Linear(48, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.last(self.second(self.first(x.flatten(1))))
        return logits


def test_tied_weights_in_safetensors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from safetensors import safe_open
    from safetensors.torch import save_model as theirs

    (tmp_path / "tied_network.py").write_text(
        "import torch\nfrom torch import nn\n"
        "class Tied(nn.Module):\n"
        "    def __init__(self, num_classes):\n"
        "        super().__init__()\n"
        "        self.first, self.second = nn.Linear(48, 48), nn.Linear(48, 48)\n"
        "        self.second.weight = self.first.weight\n"
        "        self.last = nn.Linear(48, num_classes)\n"
        "    def forward(self, x):\n"
        "        return self.last(self.second(self.first(x.flatten(1))))\n"
    )
    arch = f"{tmp_path / 'tied_network.py'}:Tied"
    network = Tied()
    theirs(network, str(tmp_path / "a.safetensors"))
    small = Assumptions(arch=arch, dataset=_small(), normalize="none")
    model = load_model(tmp_path / "a.safetensors", given=small)
    x = torch.rand(2, 3, 4, 4)
    assert torch.equal(model.classifier(x), network(x))
    save_model(tmp_path / "new.safetensors", model.info, model.classifier.network.state_dict())
    with safe_open(tmp_path / "new.safetensors", "pt") as handle:
        assert handle.metadata()["second.weight"] == "first.weight"
    again = load_model(tmp_path / "new.safetensors", given=Assumptions(arch=arch))
    assert torch.equal(again.classifier(x), network(x))


def _small() -> Any:
    import dataclasses

    return dataclasses.replace(dataset("cifar10"), shape=(3, 4, 4))


def test_parts_of_one_tensor_are_written_apart(tmp_path: Path) -> None:
    from smoothctl.models.safe_loading import read_content, write_safetensors

    whole = torch.arange(6.0)
    write_safetensors(tmp_path / "a.safetensors", {"a": whole[:4], "b": whole[2:], "c": whole[:4]}, {})
    read = read_content(tmp_path / "a.safetensors")
    assert {key: value.tolist() for key, value in read.items()} == {
        "a": [0, 1, 2, 3],
        "b": [2, 3, 4, 5],
        "c": [0, 1, 2, 3],
    }


def test_torchscript_is_named_with_its_remedy(network: nn.Module, tmp_path: Path) -> None:
    torch.jit.trace(network, torch.rand(1, 3, 32, 32)).save(str(tmp_path / "a.pt"))  # type: ignore[no-untyped-call]
    with pytest.raises(SmoothctlError, match=r"is a TorchScript program.*torch\.jit\.load\('a\.pt'\)\.state_dict"):
        load_model(tmp_path / "a.pt")


# Names


def test_counters_of_other_tools_are_ignored_and_said(
    network: nn.Module, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    state = dict(network.state_dict())
    for key in ("total_ops", "layer1.0.total_params", "conv1.total_ops"):
        state[key] = torch.zeros(1)
    assert answers_alike(store(tmp_path / "a.pt", state), network) == "resnet20"
    assert "ignoring total_ops, total_params" in capsys.readouterr().err
    state["total_opsx"] = torch.zeros(1)
    with pytest.raises(SmoothctlError, match="left over, such as total_opsx"):
        load_model(store(tmp_path / "b.pt", state), given=Assumptions(arch="resnet20"))


def test_a_real_child_called_module(tmp_path: Path) -> None:
    (tmp_path / "inner.py").write_text(
        "from torch import nn\n"
        "class Net(nn.Module):\n"
        "    def __init__(self, num_classes):\n"
        "        super().__init__()\n"
        "        self.module = nn.Linear(48, 8)\n"
        "        self.head = nn.Linear(8, num_classes)\n"
        "    def forward(self, x):\n"
        "        return self.head(self.module(x.flatten(1)))\n"
    )
    state = {
        "module.weight": torch.rand(8, 48), "module.bias": torch.rand(8),
        "head.weight": torch.rand(10, 8), "head.bias": torch.rand(10),
    }  # fmt: skip
    given = Assumptions(arch=f"{tmp_path / 'inner.py'}:Net", dataset=_small(), normalize="none")
    for wrapped in (state, {f"module.{key}": value for key, value in state.items()}):
        model = load_model(store(tmp_path / "a.pt", wrapped), given=given)
        assert torch.equal(model.classifier.network.module.weight, state["module.weight"])  # type: ignore[union-attr]


def test_what_comes_off_and_in_which_order() -> None:
    plain = {"0.weight": torch.zeros(2, 2), "1.weight": torch.zeros(2, 2), "1.bias": torch.zeros(2)}
    assert [set(variant.state) for variant in unwrap(plain)] == [set(plain)]
    as_it_is, without = unwrap({"a.module.b._orig_mod.weight": torch.zeros(1), "c.weight": torch.zeros(1)})
    assert as_it_is.dropped == ()
    assert set(without.state) == {"a.b.weight", "c.weight"}
    assert without.dropped == ("module", "_orig_mod")
    kept = {"normalize.mean": torch.zeros(1, 3, 1, 1), "normalize.std": torch.ones(3), "net.fc.weight": torch.zeros(1)}
    found = [variant for variant in unwrap(kept) if set(variant.state) == {"fc.weight"}]
    assert found[0].constants == ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))


# Classes, sizes and normalization


@pytest.mark.parametrize("arch", ["torchvision/squeezenet1_1", "timm/resnet10t", "resnet18"])
def test_classes_are_those_of_the_probe_whatever_the_head(arch: str, tmp_path: Path) -> None:
    network = build_classifier(arch, 10, (3, 224, 224)).network.eval()
    file = store(tmp_path / "a.pt", network.state_dict())
    with pytest.raises(UsageError, match=r"has 10 classes, dataset imagenet has 1000"):
        load_model(file, given=Assumptions(arch=arch))
    answers_alike(file, network, arch=arch, dataset=dataset("cifar10"))


def test_class_names_never_change_the_normalization(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    network = build_classifier("lenet", 10, (1, 28, 28)).network
    state = {f"1.{key}": value for key, value in network.state_dict().items()}
    file = store(tmp_path / "a.pt", {"arch": "lenet", "state_dict": state})
    assert load_model(file).info.std == [1.0]
    with pytest.raises(UsageError, match="give `normalize=mnist`, `normalize=fashion-mnist`, `normalize=center`"):
        load_model(file, given=Assumptions(dataset=dataset("fashion-mnist")))
    for how, std in (("mnist", 1.0), ("fashion-mnist", 0.353)):
        capsys.readouterr()
        model = load_model(file, given=Assumptions(dataset=dataset("fashion-mnist"), normalize=how))
        assert model.info.class_names[0] == "T-shirt/top"
        assert model.info.std == pytest.approx([std])
        assert "warning" not in capsys.readouterr().err


def test_a_network_for_imagenet_at_32_pixels(tmp_path: Path) -> None:
    network = build_classifier("resnet20", 1000, (3, 32, 32)).network.eval()
    state = {f"1.{key}": value for key, value in network.state_dict().items()}
    file = store(tmp_path / "a.pt", {"arch": "cifar_resnet20", "state_dict": state})
    with pytest.raises(UsageError, match=r"1000 classes, dataset cifar10 has 10; give `dataset`.*`size`.*`normalize`"):
        load_model(file)
    with pytest.raises(UsageError, match=r"give `size=32` or `size=224`, and `normalize`"):
        load_model(file, given=Assumptions(dataset=dataset("imagenet")))
    model = load_model(file, given=Assumptions(dataset=dataset("imagenet"), size=32, normalize="imagenet"))
    assert model.info.input_shape == (3, 32, 32)
    assert len(model.info.class_names) == 1000


def test_one_message_names_all_that_must_be_said(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    file = store(tmp_path / "a.pt", {"1.conv.weight": torch.zeros(4, 3, 3, 3), "1.fc.weight": torch.zeros(10, 4)})
    assert run(["certify", str(file), "--sigma", "0.25"]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    for flag in ("--arch", "--dataset", "--normalize", "timm/NAME", "torchvision/NAME"):
        assert flag in line


def test_damaged_files_are_one_line(shared: Path, capsys: pytest.CaptureFixture) -> None:
    for file in sorted((shared / "cases" / "models").iterdir()):
        assert run(["certify", str(file), "--sigma", "0.25"]) in (1, 2)
        (line,) = capsys.readouterr().err.strip().splitlines()
        assert str(file) in line


def test_an_archive_that_unpacks_to_far_more_is_refused(tmp_path: Path) -> None:
    import zipfile

    torch.save({"weight": torch.zeros(5_000_000)}, tmp_path / "a.pt")
    with (
        zipfile.ZipFile(tmp_path / "a.pt") as plain,
        zipfile.ZipFile(tmp_path / "b.pt", "w", zipfile.ZIP_DEFLATED) as packed,
    ):
        for entry in plain.infolist():
            packed.writestr(entry.filename, plain.read(entry))
    with pytest.raises(SmoothctlError, match=r"would unpack to 20,\d+,\d+ bytes"):
        load_model(tmp_path / "b.pt")


@pytest.mark.parametrize("damage", range(8))
def test_a_file_with_damaged_bytes_loads_or_is_one_line(
    damage: int, trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    import random

    rng = random.Random(damage)
    for ending in ("pt", "safetensors"):
        model = load_model(trained)
        save_model(tmp_path / f"a.{ending}", model.info, model.classifier.network.state_dict())
        data = bytearray((tmp_path / f"a.{ending}").read_bytes())
        for _ in range(3):
            data[rng.randrange(min(len(data), 4000))] = rng.randrange(256)
        (tmp_path / f"b.{ending}").write_bytes(data)
        assert run(["convert", str(tmp_path / f"b.{ending}"), str(tmp_path / "new.pt"), "--overwrite"]) in (0, 1, 2)
        assert len(capsys.readouterr().err.strip().splitlines()) <= 1
