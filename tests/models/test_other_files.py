"""Files that are given for models and are none: one line that says what they are and what to do."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from torch import nn

from smoothctl import SmoothctlError, load_model
from smoothctl.models.import_checkpoint import Assumptions
from smoothctl.models.safe_loading import read_content


def saved() -> bytes:
    content = io.BytesIO()
    torch.save({"weight": torch.rand(50, 50)}, content)
    return content.getvalue()


def zipped() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("net/model.pth", saved())
    return content.getvalue()


def tarred(mode: Literal["w", "w:gz"]) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode=mode) as archive:
        entry = tarfile.TarInfo("model.pth")
        entry.size = len(saved())
        archive.addfile(entry, io.BytesIO(saved()))
    return content.getvalue()


def arrays() -> bytes:
    content = io.BytesIO()
    np.savez(content, weight=np.zeros(3))
    return content.getvalue()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "git lfs pull"),
        (b"\n<!DOCTYPE html><title>Virus scan warning</title>", "is a web page"),
        (zipped(), "unpack it and give the file in it, such as net/model"),
        (tarred("w:gz"), "is an archive"),
        (tarred("w"), "is an archive"),
        (arrays(), "holds NumPy arrays, not a state dict"),
        (saved()[:-3000], "its end is missing"),
        (b"\x89HDF\r\n\x1a\n" + bytes(100), "HDF5"),
        (b"\x93NUMPY\x01\x00", "is a NumPy array"),
        (b"\x1c\x00\x00\x00TFL3" + bytes(20), "TensorFlow Lite"),
    ],
)  # fmt: skip
def test_what_is_no_model_is_named(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "model.pth"
    path.write_bytes(content)
    with pytest.raises(SmoothctlError, match=said) as caught:
        read_content(path)
    assert "\n" not in str(caught.value)


def test_an_attacker_that_repeats_the_network_is_left_out(tmp_path: Path, resnet20: nn.Module) -> None:
    """As the package robustness writes checkpoints: network, normalizer, and an attacker with both again."""
    weights = dict(resnet20.state_dict())
    mean, std = torch.tensor([0.49, 0.48, 0.44]).view(3, 1, 1), torch.tensor([0.2, 0.21, 0.22]).view(3, 1, 1)
    state = {f"module.model.{key}": value for key, value in weights.items()}
    state |= {f"module.attacker.model.{key}": value for key, value in weights.items()}
    for place in ("normalizer", "attacker.normalize"):
        state |= {f"module.{place}.new_mean": mean, f"module.{place}.new_std": std}
    torch.save({"model": state, "epoch": 3}, tmp_path / "net.pt")
    model = load_model(tmp_path / "net.pt", given=Assumptions())
    assert model.info.mean == pytest.approx([0.49, 0.48, 0.44])
    assert model.info.std == pytest.approx([0.2, 0.21, 0.22])
    x = torch.rand(2, 3, 32, 32)
    torch.testing.assert_close(model.classifier(x), resnet20((x - mean) / std))


@pytest.fixture
def resnet20() -> nn.Module:
    from smoothctl.models.classifier import build_classifier

    torch.manual_seed(0)
    network = build_classifier("resnet20", 10, (3, 32, 32)).network
    network(torch.rand(8, 3, 32, 32))
    return network.eval()
