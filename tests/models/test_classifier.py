"""Base classifiers: what stands between pixels and logits, and where noise is added."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from smoothctl import UsageError, certify, predict
from smoothctl.cli import run
from smoothctl.models.checkpoint import load_model, save_model
from smoothctl.models.classifier import BaseClassifier, build_classifier
from tests.conftest import PluginMaker
from tests.networks import OutsideBox, Threshold, grey_images


class ThresholdAtZero(nn.Module):
    """The classifier Threshold for images normalised with mean 1/2: class 1 iff [0,0,0] > 0."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([-x[:, 0, 0, 0], x[:, 0, 0, 0]], dim=1)


class UpSampled(nn.Module):
    """Threshold of the mean of the 2x2 corner of an image enlarged to twice its size."""

    def forward(self, x: Tensor) -> Tensor:
        z = F.interpolate(x, scale_factor=2, mode="nearest")[:, 0, :2, :2].mean(dim=(1, 2)) - 0.5
        return torch.stack([-z, z], dim=1)


@pytest.mark.parametrize(
    "model",
    [
        BaseClassifier(ThresholdAtZero(), [0.5] * 3, [0.25] * 3),
        BaseClassifier(UpSampled(), [0.0] * 3, [1.0] * 3),
        BaseClassifier(Threshold(), [0.0] * 3, [1.0] * 3),
    ],
    ids=["normalised", "enlarged", "plain"],
)
def test_noise_comes_before_normalising_and_resizing(model: nn.Module) -> None:
    """The true radius is 0.3; noise after normalising would give 1.16, after enlarging 0.57."""
    (certificate,) = certify(model, grey_images(1, 0.8), sigma=0.5, n0=100, n=20_000, alpha=0.001)
    assert certificate.predict == 1
    assert 0.25 < certificate.radius <= 0.3


def test_noisy_images_are_not_clipped_when_certifying_or_predicting() -> None:
    x = torch.full((1, 3, 8, 8), 0.5)
    (certificate,) = certify(OutsideBox(), x, sigma=0.5, n0=50, n=500, alpha=0.001)
    assert certificate.votes.tolist() == [0, 500]
    (prediction,) = predict(OutsideBox(), x, sigma=0.5, n=500, alpha=0.001)
    assert prediction.votes.tolist() == [0, 500]


RECORDER = """
import torch
from torch import nn

SEEN = []

class Net(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.fc = nn.Linear(64, num_classes)

    def forward(self, x):
        if self.training:
            SEEN.append(x.detach().clone())
        return self.fc(x.flatten(1))
"""


def test_training_noise_is_fresh_every_epoch_unclipped_and_of_the_right_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib

    import numpy as np

    (tmp_path / "recorder_module.py").write_text(RECORDER)
    monkeypatch.syspath_prepend(str(tmp_path))
    grey = np.full((4, 8, 8), 0.5, np.float32)
    labels = np.arange(4)
    np.savez(tmp_path / "g.npz", train_images=grey, test_images=grey, train_labels=labels, test_labels=labels)
    command = ["train", "--arch", "recorder_module:Net", "--dataset", "npz", "--data", str(tmp_path / "g.npz")]
    more = ["--normalize", "none", "--epochs", "2", "--sigma", "0.5", "--batch-size", "4"]
    assert run([*command, *more, "--out", str(tmp_path / "run")]) == 0
    first, second = importlib.import_module("recorder_module").SEEN
    noise = torch.stack([first, second]) - 0.5
    assert float(noise.std()) == pytest.approx(0.5, rel=0.1)
    assert not torch.equal(first, second)
    assert abs(float((noise[0] * noise[1]).mean()) / 0.25) < 0.25  # uncorrelated
    assert float(first.min()) < 0
    assert float(first.max()) > 1


def test_the_published_vit_is_what_its_definition_says() -> None:
    """One forward pass against a computation with loops over patches and heads."""
    torch.manual_seed(0)
    model = build_classifier("vit", 10, (3, 32, 32)).eval()
    state = {key.removeprefix("network."): value for key, value in model.state_dict().items()}
    x = torch.rand(1, 3, 32, 32)

    def linear(name: str, value: Tensor) -> Tensor:
        return value @ state[f"{name}.weight"].T + state[f"{name}.bias"]

    def norm(name: str, value: Tensor) -> Tensor:
        centred = value - value.mean(-1, keepdim=True)
        scaled = centred / (centred.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()
        return scaled * state[f"{name}.weight"] + state[f"{name}.bias"]

    rows = [
        torch.tensor([float(x[0, c, 4 * i + a, 4 * j + b]) for a in range(4) for b in range(4) for c in range(3)])
        for i in range(8)
        for j in range(8)
    ]
    tokens = torch.cat([state["cls_token"][0], linear("emb", torch.stack(rows))]) + state["pos_emb"][0]
    for layer in range(7):
        name = f"enc.{layer}"
        h = norm(f"{name}.la1", tokens)
        q, k, v = (linear(f"{name}.msa.{part}", h) for part in "qkv")
        heads = []
        for head in range(12):
            cut = slice(32 * head, 32 * head + 32)
            heads.append(torch.softmax(q[:, cut] @ k[:, cut].T / math.sqrt(384), dim=1) @ v[:, cut])
        tokens = tokens + linear(f"{name}.msa.o", torch.cat(heads, dim=1))
        h = F.gelu(linear(f"{name}.mlp.0", norm(f"{name}.la2", tokens)))
        tokens = tokens + F.gelu(linear(f"{name}.mlp.3", h))
    expected = linear("fc.1", norm("fc.0", tokens[0]))
    with torch.no_grad():
        torch.testing.assert_close(model(x)[0], expected, atol=1e-4, rtol=1e-4)


def test_option_a_pads_with_zeros() -> None:
    """The shortcut of a block whose convolutions are silenced: every other pixel, 8 empty channels on each side."""
    network = build_classifier("resnet20a", 10, (3, 32, 32)).network.eval()
    block = network.get_submodule("layer2.0")
    nn.init.zeros_(block.bn2.weight)  # type: ignore[arg-type,union-attr]
    x = torch.rand(1, 16, 8, 8)
    with torch.no_grad():
        y = block(x)
    assert torch.equal(y[:, 8:24], x[:, :, ::2, ::2])
    assert not y[:, :8].any()
    assert not y[:, 24:].any()


@pytest.mark.parametrize("average", ["logits", "softmax"])
def test_an_ensemble_is_the_mean_of_its_members(average: str) -> None:
    model = build_classifier("ensemble/lenet+lenet5", 10, (1, 28, 28), {"average": average}, [0.1], [0.3]).eval()
    x = torch.rand(3, 1, 28, 28)
    with torch.no_grad():
        parts = torch.stack([member(x) for member in model.network.members])  # type: ignore[union-attr]
        mean = parts.mean(0) if average == "logits" else parts.softmax(2).mean(0).log()
        torch.testing.assert_close(model(x), mean)
        inner = model.network.members[0].network  # type: ignore[union-attr,index]
        torch.testing.assert_close(parts[0], inner((x - 0.1) / 0.3))


def test_members_after_a_consensus_are_asked_about_the_other_images_only() -> None:
    torch.manual_seed(0)
    names, x = "ensemble/lenet+lenet+lenet", torch.rand(200, 1, 8, 8)
    every = build_classifier(names, 3, (1, 8, 8)).eval()
    some = build_classifier(names, 3, (1, 8, 8), {"consensus": 2}).eval()
    some.load_state_dict(every.state_dict())
    asked: list[int] = []
    some.network.members[2].register_forward_hook(lambda _, inputs, logits: asked.append(len(logits)))  # type: ignore
    with torch.no_grad():
        first, second, _ = (member(x) for member in every.network.members)  # type: ignore[union-attr]
        agreed = first.argmax(1) == second.argmax(1)
        assert 0 < agreed.sum() < len(x)
        expected = torch.where(agreed[:, None], (first + second) / 2, every(x))
        torch.testing.assert_close(some(x), expected)
        assert asked == [int((~agreed).sum())]
        for row in range(3):
            torch.testing.assert_close(some(x[row : row + 1]), expected[row : row + 1])
    some.train()(x)
    assert asked[-1] == len(x)


@pytest.mark.parametrize("consensus", [1, "4", "two", 2.5, True])
def test_a_consensus_of_no_members_is_refused(consensus: object) -> None:
    with pytest.raises(UsageError, match=r"consensus=.* it is a number from 2 to 3"):
        build_classifier("ensemble/lenet+lenet+lenet", 10, (1, 8, 8), {"consensus": consensus})


def test_a_sigma_that_the_model_was_not_trained_for_is_said(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    model = load_model(trained)
    command = ["--n0", "2", "--n", "20", "--alpha", "0.01", "--max", "1", "--sigma"]
    for known, asked, words in (
        (0.25, "1.0", "trained for sigma 0.25, here sigma is 1"),
        (0.25, "0.25", ""),
        (0.0, "0.25", "trained without noise, here sigma is 0.25"),
        (None, "0.25", ""),
    ):
        file = tmp_path / f"{known}.pt"
        save_model(file, model.info.model_copy(update={"sigma": known}), model.classifier.network.state_dict())
        capsys.readouterr()
        assert run(["certify", str(file), *command, asked, "--out", str(tmp_path / f"{known}{asked}.tsv")]) == 0
        error = capsys.readouterr().err
        assert words in error
        assert ("warning" in error) == bool(words)
    file = tmp_path / "0.0.pt"
    assert run(["certify", str(file), "--out", str(tmp_path / "x.tsv")]) == 2
    assert "give --sigma" in capsys.readouterr().err


INTERRUPTER = """
import smoothctl

@smoothctl.hookimpl
def observe(event):
    if event.kind == "train.epoch" and event.data["epoch"] == 1:
        raise KeyboardInterrupt
"""


def test_an_interrupted_run_ends_with_the_same_weights_and_learning_rates(
    make_plugin: PluginMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import json

    from smoothctl.hooks.registry import forget

    command = ["train", "--arch", "lenet", "--epochs", "4", "--milestones", "2,3", "--sigma", "0.25", "--out"]
    assert run([*command, str(tmp_path / "straight")]) == 0
    make_plugin("interrupter", INTERRUPTER)
    assert run([*command, str(tmp_path / "resumed")]) == 130
    monkeypatch.setenv("SMOOTHCTL_BLOCK_PLUGINS", "interrupter")
    forget()
    assert run([*command, str(tmp_path / "resumed")]) == 0
    lines = [
        [json.loads(line)["lr"] for line in (tmp_path / name / "epochs.jsonl").read_text().splitlines()]
        for name in ("straight", "resumed")
    ]
    assert lines[0] == lines[1]
    assert len(set(lines[0])) == 3
    one, other = (load_model(tmp_path / name).classifier.state_dict() for name in ("straight", "resumed"))
    assert all(torch.equal(one[key], other[key]) for key in one)


def test_a_save_that_is_cut_short_leaves_the_last_good_model(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load_model(trained)
    file = tmp_path / "model.pt"
    save_model(file, model.info, model.classifier.network.state_dict())
    before = file.read_bytes()

    def killed(content: object, path: Path) -> None:
        Path(path).write_bytes(before[: len(before) // 2])
        raise KeyboardInterrupt

    monkeypatch.setattr(torch, "save", killed)
    with pytest.raises(KeyboardInterrupt):
        save_model(file, model.info, model.classifier.network.state_dict())
    assert file.read_bytes() == before
    assert load_model(tmp_path).info == model.info
