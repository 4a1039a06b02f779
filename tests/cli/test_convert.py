"""``smoothctl convert`` to files for other runtimes, as a stranger reads them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from smoothctl.models.checkpoint import ModelInfo, load_model
from smoothctl.models.settings import EXPORTED
from tests.cli.conftest import Typed

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

AGREEMENT = 1e-4
Logits = Callable[[Tensor], Tensor]


def read(path: Path) -> tuple[Logits, dict[str, str]]:
    """What a stranger makes of an exported file: its logits and its metadata, without any of our code."""
    if path.suffix == ".onnx":
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        found = session.get_modelmeta().custom_metadata_map
        return lambda x: torch.from_numpy(session.run(None, {"pixels": x.numpy()})[0]), found
    found = dict.fromkeys(
        ["class_names", "input_shape", "mean", "std", "sigma", "noise", "arch", "dataset", "info"], ""
    )
    return torch.export.load(path, extra_files=found).module(), found


@pytest.mark.parametrize("ending", EXPORTED)
def test_a_run_is_exported_with_what_a_caller_must_know(
    trained: Path, tmp_path: Path, typed: Typed, ending: str
) -> None:
    file = tmp_path / f"model{ending}"
    done = typed(f"convert {trained} {file}")
    assert done.code == 0
    assert "from pixels [N,1,8,8] in [0,1] to logits [N,10]; a caller adds gaussian noise of sigma 0.25" in done.out
    assert "agrees with PyTorch" in done.err
    model = load_model(trained)
    logits, found = read(file)
    x = torch.rand(7, 1, 8, 8)
    torch.testing.assert_close(logits(x), model.classifier(x), atol=AGREEMENT, rtol=AGREEMENT)
    assert json.loads(found["class_names"]) == model.info.class_names
    assert json.loads(found["input_shape"]) == [1, 8, 8]
    assert json.loads(found["mean"]) == model.info.mean
    assert json.loads(found["std"]) == model.info.std
    assert (json.loads(found["sigma"]), found["noise"], found["arch"]) == (0.25, "gaussian", model.info.arch)
    assert ModelInfo(**json.loads(found["info"])) == model.info
    before = file.read_bytes()
    assert typed(f"convert {trained} {file}").code == 2
    assert file.read_bytes() == before
    assert f"{file} is for other runtimes" in typed(f"certify {file}").err


@pytest.mark.parametrize("ending", EXPORTED)
def test_what_cannot_be_exported_is_said_and_nothing_written(tmp_path: Path, typed: Typed, ending: str) -> None:
    (tmp_path / "mine.py").write_text(
        "import torch\nfrom torch import nn\n"
        "class Net(nn.Module):\n"
        "    def __init__(self, num_classes):\n"
        "        super().__init__()\n"
        "        self.layer = nn.Linear(64, num_classes)\n"
        "    def forward(self, x):\n"
        "        y = self.layer(x.flatten(1))\n"
        "        return y if float(y.sum()) > 0 else -y\n"
    )
    arch = f"{tmp_path / 'mine.py'}:Net"
    torch.save({"layer.weight": torch.rand(10, 64), "layer.bias": torch.rand(10)}, tmp_path / "mine.pt")
    done = typed(
        f"convert {tmp_path / 'mine.pt'} {tmp_path / 'new'}{ending} --arch {arch} --dataset digits --normalize none "
        "--sigma 0.25"
    )
    assert done.code == 2
    assert "this network cannot be exported" in done.err.splitlines()[-1]
    assert not (tmp_path / f"new{ending}").exists()
