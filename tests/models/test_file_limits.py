"""What a stranger's model file may ask for: plain settings, and no more than its tensors."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from smoothctl.base.errors import SmoothctlError
from smoothctl.cli import run
from smoothctl.models.checkpoint import Model, load_model, save_model
from smoothctl.models.import_checkpoint import Assumptions


class RunsCode:
    """What pickle would execute when it is loaded carelessly."""

    def __init__(self, proof: Path):
        self.proof = proof

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.proof),)


@pytest.fixture
def proof(tmp_path: Path) -> Path:
    """A folder that is there if code was run; ``planted.pth`` beside it would make it."""
    torch.save({"state_dict": RunsCode(tmp_path / "proof")}, tmp_path / "planted.pth")
    return tmp_path / "proof"


def stored(model: Model, path: Path, **changes: Any) -> Path:
    """A model file that says something else of itself than it should."""
    info = model.info.model_copy(update=changes)
    save_model(path, info, model.classifier.network.state_dict())
    return path


@pytest.fixture(scope="module")
def model(trained: Path) -> Model:
    return load_model(trained)


READING: list[tuple[str, dict[str, Any]]] = [
    ("timm/resnet18", {"checkpoint_path": "planted.pth"}),
    ("timm/resnet18", {"pretrained_cfg": {"url": "http://127.0.0.1:9/x.pth", "file": "planted.pth"}}),
    ("timm/resnet18", {"cache_dir": "planted.pth"}),
    ("timm/resnet18", {"block": "planted"}),
    ("torchvision/resnet18", {"norm_layer": "planted"}),
    ("torchvision/resnet18", {"url": "http://127.0.0.1:9/x.pth"}),
    ("ensemble/timm/resnet18+lenet", {"members": [{"checkpoint_path": "planted.pth"}, {}]}),
    ("ensemble/lenet+lenet", {"members": [{"pretrained_cfg": {"url": "http://127.0.0.1:9/x"}}, {}]}),
    ("denoised/timm/resnet18", {"checkpoint_path": "planted.pth"}),
    ("diffusion/timm/resnet18", {"diffusion": {"unet": {"_class_name": "a/b"}}}),
]


@pytest.mark.parametrize(("arch", "options"), READING, ids=[f"{arch} {next(iter(o))}" for arch, o in READING])
def test_options_of_a_file_name_no_file_address_or_code(
    arch: str, options: dict[str, Any], model: Model, proof: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(proof.parent)
    file = stored(model, proof.parent / "m.pt", arch=arch, arch_options=options)
    with pytest.raises(SmoothctlError, match="the file sets the option") as caught:
        load_model(file)
    assert "\n" not in str(caught.value)
    assert not proof.exists()


@pytest.mark.parametrize(
    ("arch", "options"),
    [
        ("ensemble/timm/resnet10t+timm/resnet10t", {"members": [{"pretrained": True}, {"pretrained": "true"}]}),
        ("denoised/timm/resnet10t", {"pretrained": True}),
        ("denoised/lenet", {"denoiser": "planted.pth", "classifier": "planted.pth"}),
        ("torchvision/squeezenet1_1", {"pretrained": "true", "weights": "DEFAULT"}),
    ],
)
def test_options_that_choose_first_weights_are_left_out_at_every_depth(
    arch: str, options: dict[str, Any], model: Model, proof: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The weights do not fit, as those of lenet lie there; nothing was fetched or read on the way to that."""
    import socket

    used: list[object] = []

    def refuse(*where: object, **_: object) -> None:
        used.append(where)
        raise OSError("the network was used")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.chdir(proof.parent)
    with pytest.raises(SmoothctlError):
        load_model(stored(model, proof.parent / "m.pt", arch=arch, arch_options=options, input_shape=(1, 32, 32)))
    assert not used
    assert not proof.exists()


def test_an_option_that_the_user_repeats_is_taken(tmp_path: Path) -> None:
    from smoothctl.models.classifier import build_classifier

    built = build_classifier("timm/resnet10t", 10, (1, 32, 32), {"block_args": "none", "stem_width": "16"})
    info = load_info(tmp_path).model_copy(
        update={"arch": "timm/resnet10t", "input_shape": (1, 32, 32), "arch_options": {"block_args": "none"}}
    )
    info = info.model_copy(update={"arch_options": {**info.arch_options, "stem_width": "16"}})
    save_model(tmp_path / "m.pt", info, built.network.state_dict())
    with pytest.raises(SmoothctlError, match="say `arch_options=block_args=none` yourself"):
        load_model(tmp_path / "m.pt")
    loaded = load_model(tmp_path / "m.pt", given=Assumptions(arch_options={"block_args": "none"}))
    assert loaded.classifier.network.conv1[0].weight.shape[0] == 12  # type: ignore[index,union-attr]


def load_info(tmp_path: Path) -> Any:
    from smoothctl.models.checkpoint import ModelInfo

    return ModelInfo(
        arch="lenet", class_names=list("0123456789"), input_shape=(1, 28, 28), mean=[0.0], std=[1.0], noise="gaussian",
        sigma=0.25, method="gaussian", dataset="mnist",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arch", "changes"),
    [
        ("denoised/lenet", {"arch_options": {"depth": 10_000_000}}),
        ("denoised/lenet", {"arch_options": {"depth": 3, "width": 1_000_000}}),
        ("timm/vit_tiny_patch16_224", {"arch_options": {"img_size": 1_000_000}}),
        ("timm/vit_tiny_patch16_224", {"arch_options": {"img_size": 32, "patch_size": 4, "depth": 10_000_000}}),
        ("timm/vit_giant_patch14_dinov2", {"input_shape": (1, 28, 28)}),
        ("lenet", {"input_shape": (1, 1_000_000, 1_000_000)}),
        ("lenet", {"input_shape": (1, 0, 8)}),
    ],
)
def test_sizes_of_a_file_are_bounded_by_its_tensors(
    arch: str, changes: dict[str, Any], model: Model, tmp_path: Path
) -> None:
    """In a process of its own, which may take 1.5 GB more than it starts with."""
    file = stored(model, tmp_path / "m.pt", arch=arch, **changes)
    script = (
        "import resource, sys, torch, timm, torchvision, smoothctl\n"
        "from smoothctl.cli import run\n"
        "run(['plugins', '--json'])\n"
        "start = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (start + 1_500_000_000, -1))\n"
        f"sys.exit(run(['certify', {str(file)!r}, '--sigma', '0.25', '--max', '1', '--n', '20']))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.returncode in (1, 2), done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("smoothctl: ")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arch", ["timm/vit_giant_patch14_dinov2", "vit_giant_patch14_dinov2"])
def test_a_name_in_a_strangers_file_asks_for_no_more_than_its_tensors(arch: str, tmp_path: Path) -> None:
    """A network of a thousand million values is not begun for a file of twenty."""
    from torch.nn import Parameter

    torch.save({"arch": arch, "state_dict": {"a.weight": torch.zeros(4, 5), "b": torch.zeros(1)}}, tmp_path / "a.pt")
    values = 0

    def count(module: object, name: str, value: Parameter | None) -> None:
        nonlocal values
        values += 0 if value is None else value.numel()

    handle = torch.nn.modules.module.register_module_parameter_registration_hook(count)
    try:
        with pytest.raises(SmoothctlError):
            load_model(tmp_path / "a.pt")
    finally:
        handle.remove()
    assert values < 400_000_000  # those of all the registered architectures that are compared by name


def test_a_full_disk_is_one_line_whatever_the_format(run_copy: Path, tmp_path: Path) -> None:
    """A limit on the size of files stands for the full disk."""
    for name in ("new.pt", "new.safetensors"):
        done = subprocess.run(
            [sys.executable, "-m", "smoothctl", "convert", str(run_copy), str(tmp_path / name)],
            capture_output=True, text=True, timeout=120, cwd=tmp_path,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000)),
        )  # fmt: skip
        assert done.returncode == 1, done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
        assert done.stderr.startswith("smoothctl: ")
        assert not (tmp_path / name).exists()
        assert not [path for path in tmp_path.iterdir() if "tmp" in path.name]


def test_files_of_this_project_still_load(model: Model, tmp_path: Path) -> None:
    file = stored(model, tmp_path / "m.safetensors")
    assert load_model(file).info == model.info
    assert run(["certify", str(file), "--n", "20", "--alpha", "0.01", "--max", "1"]) == 0
