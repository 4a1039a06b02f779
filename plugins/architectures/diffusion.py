"""A diffusion model as the denoiser in front of a classifier (Carlini et al., ICLR 2023: "(Certified!!)
Adversarial Robustness for Free!"): one step of denoising, no training."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from smoothctl import Architecture, ModelSpec, SmoothctlError, Trained, UsageError, build_classifier, hookimpl

CONFIG, WEIGHTS = "config.json", "diffusion_pytorch_model.safetensors"
SCHEDULE = ("num_train_timesteps", "beta_start", "beta_end", "beta_schedule", "trained_betas", "rescale_betas_zero_snr")
PREDICTIONS = ("epsilon", "sample", "v_prediction")


class OneShot(nn.Module):
    """Denoises in one step of the forward process x_t = sqrt(a) x_0 + sqrt(1-a) eps, pixels in [-1,1].

    ``alpha_bar`` is a at the timestep; ``prediction`` says whether the network gives eps (epsilon), x_0
    (sample) or sqrt(a) eps - sqrt(1-a) x_0 (v_prediction). Channels beyond the image's, in which some networks
    give a variance, are left out.
    """

    def __init__(self, network: nn.Module, timestep: int, alpha_bar: float, prediction: str):
        super().__init__()
        self.network, self.timestep, self.prediction = network, timestep, prediction
        self.signal, self.noise = alpha_bar**0.5, (1 - alpha_bar) ** 0.5

    def forward(self, x: Tensor) -> Tensor:
        """Pixels [B,C,H,W] in [0,1] of noisy ones, by step 2 of algorithm 1 in the paper; clipped, as in its code."""
        x_t = self.signal * (2 * x - 1)
        given = self.network(x_t, self.timestep, return_dict=False)[0][:, : x.shape[1]]
        if self.prediction == "epsilon":
            clean = (x_t - self.noise * given) / self.signal
        elif self.prediction == "v_prediction":
            clean = self.signal * x_t - self.noise * given
        else:
            clean = given
        pixels: Tensor = (clean.clamp(-1, 1) + 1) / 2
        return pixels


class Diffused(nn.Module):
    """The classifier's logits of the denoised image, brought to the classifier's size (bilinear) after that."""

    def __init__(self, denoiser: nn.Module, classifier: nn.Module, size: tuple[int, int]):
        super().__init__()
        self.denoiser, self.classifier, self.size = denoiser, classifier, size

    def forward(self, x: Tensor) -> Tensor:
        """Logits [B,K] of pixels [B,C,H,W] in [0,1], noise included."""
        clean = self.denoiser(x)
        if clean.shape[2:] != self.size:
            clean = F.interpolate(clean, self.size, mode="bilinear", antialias=True)
        logits: Tensor = self.classifier(clean)
        return logits


def find_timestep(alphas_bar: Tensor, sigma: float) -> int:
    """The first timestep whose noise reaches that of pixels in [-1,1]: (1-a)/a >= (2 sigma)^2.

    Raises UsageError for a sigma above what the schedule ends with.
    """
    levels = ((1 - alphas_bar) / alphas_bar).sqrt() / 2
    reached = (levels >= sigma).nonzero()
    if not len(reached):
        raise UsageError(f"sigma {sigma:g} is too large for this diffusion model, whose noise ends at {levels.max():g}")
    return int(reached[0])


def build(spec: ModelSpec) -> nn.Module:
    """``diffusion/resnet20``: what ``denoise`` made. The option ``diffusion`` describes the denoiser; others go to
    the classifier. Raises UsageError without it: these models are not trained here."""
    options = dict(spec.options)
    made = options.pop("diffusion", None)
    if not isinstance(made, Mapping):
        raise UsageError(
            "a diffusion model is put in front of a trained classifier: smoothctl certify MODEL --denoiser FOLDER"
        )
    unet = _diffusers().UNet2DModel.from_config(dict(made["unet"]))
    channels, height, width = made["classifier_shape"]
    classifier = build_classifier(spec.name, spec.num_classes, (channels, height, width), options, persistent=True)
    front = OneShot(unet, made["timestep"], made["alpha_bar"], made["prediction"])
    return Diffused(front, classifier, (height, width))


def denoise(classifier: Trained, path: Path, sigma: float | None) -> Trained | None:
    """A trained classifier behind the diffusion model in a folder that diffusers saved; files are of another kind.

    The noise stands on images of the diffusion model's size. Raises UsageError for an unknown sigma, or what is no
    diffusion model of images, and SmoothctlError for weights that are damaged.
    """
    if not path.is_dir():
        return None
    folder = path / "unet" if (path / "unet" / CONFIG).is_file() else path
    shape = _image_shape(folder, _read_config(folder), classifier.input_shape)
    if not sigma:
        raise UsageError(f"the timestep of the diffusion model {path} follows from sigma; give `sigma`")
    scheduler = next((file for file in _schedulers(path) if file.is_file()), None)
    alphas_bar, prediction = _read_schedule(scheduler)
    timestep = find_timestep(alphas_bar, sigma)
    unet = _load(folder)
    made = {
        "unet": {key: value for key, value in unet.config.items() if not key.startswith("_")},
        "timestep": timestep,
        "alpha_bar": float(alphas_bar[timestep]),
        "prediction": prediction,
        "classifier_shape": list(classifier.input_shape),
    }
    state = {f"denoiser.network.{key}": value for key, value in unet.state_dict().items()}
    state |= {f"classifier.{key}": value for key, value in classifier.state.items()}
    schedule = "of its scheduler" if scheduler else "of DDPM's schedule, as the folder has no scheduler_config.json"
    return Trained(
        "diffusion/" + classifier.arch,
        {**classifier.options, "diffusion": made},
        state,
        shape,
        sigma,
        tuple(file for file in (folder / WEIGHTS, folder / CONFIG, scheduler) if file is not None),
        f"{path} denoises {shape[1]}x{shape[2]} for sigma {sigma:g} at timestep {timestep} {schedule} ({prediction})",
    )


def _image_shape(folder: Path, config: Mapping[str, Any], wanted: tuple[int, int, int]) -> tuple[int, int, int]:
    """The shape of the images that the UNet was made for: its own size, else the classifier's.

    Raises UsageError for other channels than the classifier's.
    """
    channels, height, width = wanted
    if config.get("in_channels") != channels or config.get("out_channels") not in (channels, 2 * channels):
        raise UsageError(f"{folder} is for images of {config.get('in_channels')} channels, the model takes {channels}")
    size = config.get("sample_size") or (height, width)
    height, width = (size, size) if isinstance(size, int) else size
    return channels, height, width


def _schedulers(path: Path) -> list[Path]:
    return [place / "scheduler_config.json" for place in (path / "scheduler", path, path.parent / "scheduler")]


def _read_config(folder: Path) -> dict[str, Any]:
    """The description of a UNet that takes images and nothing else; raises UsageError for anything else."""
    if not (folder / CONFIG).is_file():
        raise UsageError(f"{folder} has no {CONFIG}; a diffusion model is a folder as diffusers saves it")
    config = _read_json(folder / CONFIG)
    if config.get("_class_name") != "UNet2DModel":
        raise UsageError(f"{folder} holds a {config.get('_class_name')}; what denoises images alone is a UNet2DModel")
    if config.get("class_embed_type") or config.get("num_class_embeds"):
        raise UsageError(f"{folder} wants to be told the class of an image, which is what is to be found")
    if config.get("time_embedding_type", "positional") != "positional":
        raise UsageError(f"{folder} knows continuous times only; it takes a model with timesteps (DDPM)")
    if not (folder / WEIGHTS).is_file():
        raise UsageError(f"{folder} has no {WEIGHTS}; weights in other formats are not read, as they could run code")
    return config


def _read_schedule(scheduler: Path | None) -> tuple[Tensor, str]:
    """The products a of every timestep, and what the network predicts; without a file, those of DDPM (Ho et al.)."""
    config = {} if scheduler is None else _read_json(scheduler)
    prediction = config.get("prediction_type", "epsilon")
    if scheduler is not None and "beta_schedule" not in config:
        raise UsageError(
            f"{scheduler} ({config.get('_class_name')}) has no schedule of betas, as DDPM's and DDIM's have"
        )
    if prediction not in PREDICTIONS:
        raise UsageError(f"{scheduler}: prediction_type {prediction!r} is not one of {', '.join(PREDICTIONS)}")
    try:
        made = _diffusers().DDPMScheduler(**{key: config[key] for key in SCHEDULE if key in config})
    except (TypeError, ValueError, NotImplementedError) as error:
        raise UsageError(f"{scheduler} cannot be used ({' '.join(str(error).split())[:160]})") from None
    return made.alphas_cumprod, prediction


def _load(folder: Path) -> Any:
    """The UNet with its weights, all of them; raises SmoothctlError if they do not fit."""
    try:
        unet, found = _diffusers().UNet2DModel.from_pretrained(
            folder, use_safetensors=True, local_files_only=True, low_cpu_mem_usage=False, output_loading_info=True
        )
    except Exception as error:  # diffusers raises whatever its parts do
        raise SmoothctlError(f"{folder} cannot be loaded ({' '.join(str(error).split())[:160]})") from None
    if wrong := [*found["missing_keys"], *found["unexpected_keys"]]:
        raise SmoothctlError(f"{folder}: the weights do not fit {CONFIG}: {len(wrong)} differ, such as {wrong[0]}")
    return unet


def _read_json(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} cannot be read ({error})") from None
    if not isinstance(content, dict):
        raise UsageError(f"{file} describes nothing")
    return content


def _diffusers() -> Any:
    if importlib.util.find_spec("diffusers") is None:
        raise UsageError("a diffusion model as a denoiser needs diffusers: pip install 'smoothctl[diffusion]'")
    import diffusers

    return diffusers


@hookimpl
def register_architectures() -> list[Architecture]:
    return [
        Architecture(
            "diffusion/",
            build,
            summary="a diffusion model in front of a network; made by --denoiser FOLDER",
            options=None,
            file_options=None,
            initial_options=("pretrained",),
            normalizes=True,
            denoise=denoise,
        )
    ]
