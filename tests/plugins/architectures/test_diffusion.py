"""Diffusion models as denoisers: the algebra, the timestep, and certifying behind one from the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from smoothctl_plugins.architectures.diffusion import WEIGHTS, OneShot, find_timestep
from torch import Tensor, nn

from smoothctl.base.errors import UsageError
from smoothctl.base.files import file_sha256
from smoothctl.cli import run
from smoothctl.models.checkpoint import load_model

DDPM = torch.cumprod(1 - torch.linspace(1e-4, 0.02, 1000), dim=0)


class Oracle(nn.Module):
    """A network that knows the noise and the image [B,C,H,W] in [-1,1], and guesses the variance to be 7."""

    def __init__(self, clean: Tensor, noise: Tensor, alpha_bar: float, prediction: str):
        super().__init__()
        signal, deviation = alpha_bar**0.5, (1 - alpha_bar) ** 0.5
        self.answer = {
            "epsilon": noise, "sample": clean, "v_prediction": signal * noise - deviation * clean,
        }[prediction]  # fmt: skip

    def forward(self, x_t: Tensor, timestep: int, return_dict: bool) -> tuple[Tensor]:
        return (torch.cat([self.answer, torch.full_like(x_t, 7.0)], dim=1),)


@pytest.mark.parametrize("prediction", ["epsilon", "sample", "v_prediction"])
@pytest.mark.parametrize("timestep", [0, 100, 400])
def test_with_the_true_noise_it_gives_back_the_clean_image(timestep: int, prediction: str) -> None:
    """If sigma is exactly the noise of the timestep, x + sigma n is x_t in [0,1], for eps = n."""
    alpha_bar = float(DDPM[timestep])
    sigma = ((1 - alpha_bar) / alpha_bar) ** 0.5 / 2
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(4, 3, 8, 8, generator=generator)
    n = torch.randn(4, 3, 8, 8, generator=generator)
    denoiser = OneShot(Oracle(2 * x - 1, n, alpha_bar, prediction), timestep, alpha_bar, prediction)
    torch.testing.assert_close(denoiser(x + sigma * n), x, atol=1e-5, rtol=0)


def test_a_wrong_guess_is_clipped_to_pixels() -> None:
    alpha_bar = float(DDPM[400])
    x = torch.full((1, 1, 4, 4), 0.5)
    denoiser = OneShot(Oracle(9 * torch.ones_like(x), x, alpha_bar, "sample"), 400, alpha_bar, "sample")
    assert float(denoiser(x).max()) == 1.0


@pytest.mark.parametrize("sigma", [0.12, 0.25, 0.5, 1.0])
def test_the_timestep_is_the_first_whose_noise_reaches_sigma(sigma: float) -> None:
    timestep = find_timestep(DDPM, sigma)
    before, at = ((1 - DDPM[step]) / DDPM[step] for step in (timestep - 1, timestep))
    assert float(before) < (2 * sigma) ** 2 <= float(at)


def test_a_sigma_beyond_the_schedule_is_refused() -> None:
    with pytest.raises(UsageError, match="sigma 100 is too large for this diffusion model, whose noise ends at 78"):
        find_timestep(DDPM, 100)


def save(folder: Path, *, scheduler: dict[str, object] | None = None, **changes: object) -> Path:
    """A tiny diffusion model with random weights as a pipeline's folder."""
    diffusers = pytest.importorskip("diffusers", reason="diffusers is not installed")
    torch.manual_seed(0)
    settings = {
        "sample_size": 8, "in_channels": 1, "out_channels": 1, "layers_per_block": 1, "block_out_channels": (4, 8),
        "norm_num_groups": 4, "down_block_types": ("DownBlock2D", "AttnDownBlock2D"),
        "up_block_types": ("AttnUpBlock2D", "UpBlock2D"), "attention_head_dim": 4,
    }  # fmt: skip
    diffusers.UNet2DModel(**{**settings, **changes}).save_pretrained(folder / "unet")
    diffusers.DDPMScheduler(**(scheduler or {})).save_pretrained(folder / "scheduler")
    return folder


def settle(command: str, model: Path, *more: str) -> int:
    n0 = ["--n0", "2", "--alpha", "0.01"] if command == "certify" else []
    return run([command, str(model), "--n", "20", "--batch-size", "22", "--max", "2", *n0, *more])


def votes(log: Path) -> list[list[str]]:
    """The rows of a log without times."""
    head, *rows = [line.split("\t") for line in log.read_text().splitlines()]
    return [[cell for name, cell in zip(head, row, strict=True) if name != "time"] for row in rows]


def test_it_certifies_predicts_and_converts(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    folder = save(tmp_path / "ddpm")
    behind = ["--denoiser", str(folder), "--sigma", "0.5"]
    assert settle("certify", trained, *behind, "--out", str(tmp_path / "a.tsv")) == 0
    assert "for sigma 0.5 at timestep 259 of its scheduler (epsilon)" in capsys.readouterr().err
    assert settle("predict", trained, *behind, "--out", str(tmp_path / "p.tsv")) == 0
    for ending in ("pt", "safetensors"):
        assert run(["convert", str(trained), str(tmp_path / f"pair.{ending}"), *behind]) == 0
        log = tmp_path / f"{ending}.tsv"
        assert settle("certify", tmp_path / f"pair.{ending}", "--out", str(log)) == 0
        assert votes(log) == votes(tmp_path / "a.tsv")
    record = json.loads((tmp_path / "a.json").read_text())
    assert record["settings"]["sigma"] == 0.5
    about = json.dumps(record)
    for file in (trained / "model.pt", folder / "unet" / WEIGHTS):
        assert file_sha256(file) in about
    assert '"timestep": 259' in about


def test_the_composed_model_is_the_algebra_before_the_classifier(trained: Path, tmp_path: Path) -> None:
    """A folder of the UNet alone, that also gives a variance, for images twice as large as the classifier's."""
    folder = save(tmp_path / "ddpm", out_channels=2, sample_size=16)
    pair = tmp_path / "pair.pt"
    assert run(["convert", str(trained), str(pair), "--denoiser", str(folder / "unet"), "--sigma", "0.5"]) == 0
    from diffusers import UNet2DModel

    model, classifier = load_model(pair), load_model(trained).classifier
    assert (model.info.arch, model.info.input_shape, model.info.sigma) == ("diffusion/lenet", (1, 16, 16), 0.5)
    unet = UNet2DModel.from_pretrained(folder / "unet").eval()
    x = torch.rand(3, 1, 16, 16) + 0.5 * torch.randn(3, 1, 16, 16)
    a = DDPM[259]
    with torch.no_grad():
        x_t = a.sqrt() * (2 * x - 1)
        clean = (x_t - (1 - a).sqrt() * unet(x_t, 259).sample[:, :1]) / a.sqrt()
        small = nn.functional.interpolate((clean.clamp(-1, 1) + 1) / 2, (8, 8), mode="bilinear", antialias=True)
        torch.testing.assert_close(model.classifier(x), classifier(small), atol=1e-4, rtol=1e-4)


def test_an_image_file_is_predicted_behind_it(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    from PIL import Image

    Image.fromarray(np.zeros((9, 9), np.uint8)).save(tmp_path / "i.png")
    folder = save(tmp_path / "ddpm")
    assert run(["predict", str(trained), str(tmp_path / "i.png"), "--n", "20", "--denoiser", str(folder)]) == 0
    assert "votes of 20" in capsys.readouterr().out


def test_it_needs_a_sigma_that_somebody_says(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    from smoothctl.models.checkpoint import save_model

    model = load_model(trained)
    save_model(tmp_path / "c.pt", model.info.model_copy(update={"sigma": 0.0}), model.classifier.network.state_dict())
    folder = save(tmp_path / "ddpm")
    assert settle("certify", tmp_path / "c.pt", "--denoiser", str(folder)) == 2
    assert "follows from sigma; give --sigma" in capsys.readouterr().err
    assert settle("certify", tmp_path / "c.pt", "--denoiser", str(folder), "--sigma", "99") == 2
    assert "sigma 99 is too large" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"in_channels": 3, "out_channels": 3}, "is for images of 3 channels, the model takes 1"),
        ({"num_class_embeds": 10}, "wants to be told the class"),
        ({"time_embedding_type": "fourier"}, "continuous times only"),
        ({"scheduler": {"prediction_type": "flow"}}, "prediction_type 'flow' is not one of"),
    ],
)
def test_what_is_no_denoiser_is_refused_in_a_line(
    changes: dict[str, object], words: str, trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    folder = save(tmp_path / "ddpm", **changes)  # type: ignore[arg-type]
    assert settle("certify", trained, "--denoiser", str(folder), "--out", str(tmp_path / "l.tsv")) == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert words in error[-1]
    assert not (tmp_path / "l.tsv").exists()


def test_damaged_folders_are_refused_in_a_line(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    from safetensors.torch import load_file, save_file

    def refused(words: str, code: int) -> None:
        assert settle("certify", trained, "--denoiser", str(folder), "--out", str(tmp_path / "l.tsv")) == code
        assert words in capsys.readouterr().err.strip().splitlines()[-1]

    folder = save(tmp_path / "ddpm")
    weights = folder / "unet" / WEIGHTS
    tensors = load_file(weights)
    save_file({key: value for key, value in tensors.items() if key != "conv_in.weight"}, weights)
    refused("1 differ, such as conv_in.weight", 1)
    weights.write_bytes(weights.read_bytes()[:100])
    refused("cannot be loaded", 1)
    weights.rename(weights.with_suffix(".bin"))
    refused("could run code", 2)
    (folder / "scheduler" / "scheduler_config.json").write_text('{"_class_name": "KarrasVeScheduler"}')
    weights.with_suffix(".bin").rename(weights)
    refused("has no schedule of betas", 2)
    (folder / "unet" / "config.json").unlink()
    refused("a folder as diffusers saves it", 2)


def test_it_is_not_an_architecture_to_train(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert run(["train", "--arch", "diffusion/lenet", "--out", str(tmp_path / "run")]) == 2
    assert "smoothctl certify MODEL --denoiser FOLDER" in capsys.readouterr().err


def test_diffusers_is_imported_only_when_it_is_used() -> None:
    code = "import sys; from smoothctl.hooks.registry import registry; registry(); sys.exit('diffusers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
