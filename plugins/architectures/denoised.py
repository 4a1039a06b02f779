"""A denoiser in front of a classifier (denoised smoothing, Salman et al., NeurIPS 2020)."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from torch import Tensor, nn

from smoothctl import (
    Architecture,
    ModelSpec,
    SmoothctlError,
    Trained,
    UsageError,
    build_classifier,
    hookimpl,
    load_model,
    read_weights,
)

OWN = ("depth", "width", "denoiser", "classifier")


class DnCnn(nn.Module):
    """DnCNN (Zhang et al. 2017): convolutions that predict the noise, which is then taken away.

    It starts as the identity. Keys are those of the published denoisers.
    """

    def __init__(self, channels: int, depth: int, width: int):
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU()]
        for _ in range(depth - 2):
            norm = nn.BatchNorm2d(width, eps=1e-4, momentum=0.95)
            layers += [nn.Conv2d(width, width, 3, padding=1, bias=False), norm, nn.ReLU()]
        layers.append(nn.Conv2d(width, channels, 3, padding=1, bias=False))
        self.dncnn = nn.Sequential(*layers)
        for layer in layers[:-1]:
            if isinstance(layer, nn.Conv2d):
                nn.init.orthogonal_(layer.weight)
        nn.init.zeros_(layers[-1].weight)  # type: ignore[arg-type]

    def forward(self, x: Tensor) -> Tensor:
        """Denoised pixels [B,C,H,W]."""
        denoised: Tensor = x - self.dncnn(x)
        return denoised


class Denoised(nn.Module):
    """The classifier's logits of the denoised image. A part that came from a file stays as it is."""

    def __init__(self, denoiser: nn.Module, classifier: nn.Module):
        super().__init__()
        self.denoiser, self.classifier = denoiser, classifier
        self.frozen: list[nn.Module] = []

    def forward(self, x: Tensor) -> Tensor:
        """Logits [B,K] of pixels [B,C,H,W]."""
        logits: Tensor = self.classifier(self.denoiser(x))
        return logits

    def train(self, mode: bool = True) -> Self:
        super().train(mode)
        for part in self.frozen:
            part.eval()
        return self


def build(spec: ModelSpec) -> nn.Module:
    """``denoised/resnet20``. Options ``denoiser=FILE`` and ``classifier=FILE`` take a part's weights from a
    file and keep them; ``depth`` and ``width`` are the denoiser's; others go to the classifier."""
    options = {name: value for name, value in spec.options.items() if name not in OWN}
    depth, width = spec.options.get("depth", 17), spec.options.get("width", 64)
    if not (isinstance(depth, int) and isinstance(width, int) and depth >= 2 and width >= 1):
        raise UsageError("denoised/ takes a depth of at least 2 and a width of at least 1")
    network = Denoised(
        DnCnn(spec.input_shape[0], depth, width),
        build_classifier(spec.name, spec.num_classes, spec.input_shape, options, spec.mean, spec.std, persistent=True),
    )
    if file := spec.options.get("denoiser"):
        _take(network.denoiser, dict(read_weights(Path(file)).state), file)
        network.frozen.append(network.denoiser)
    if file := spec.options.get("classifier"):
        model = load_model(file)
        constants = {f"normalize.{name}": value for name, value in model.classifier.normalize.named_buffers()}
        _take(network.classifier, {**model.classifier.state_dict(), **constants}, file)
        network.frozen.append(network.classifier)
    for part in network.frozen:
        part.requires_grad_(False)
    return network


def _take(part: nn.Module, state: dict[str, Tensor], file: str) -> None:
    try:
        part.load_state_dict(state)
    except RuntimeError as error:
        raise SmoothctlError(
            f"{file} does not fit this denoised classifier ({' '.join(str(error).split())[:200]})"
        ) from None


def denoise(classifier: Trained, path: Path, sigma: float | None) -> Trained | None:
    """A trained classifier behind a DnCNN whose weights are in a file; folders are of another kind.

    Raises SmoothctlError if the file has no weights.
    """
    if path.is_dir():
        return None
    front = read_weights(path).state
    kernels = [value for value in front.values() if value.ndim == 4]
    options = {**classifier.options, "depth": len(kernels), "width": len(kernels[0]) if kernels else 0}
    state = {f"denoiser.{key}": value for key, value in front.items()}
    state |= {f"classifier.{key}": value for key, value in classifier.state.items()}
    return Trained("denoised/" + classifier.arch, options, state, classifier.input_shape, classifier.sigma, (path,))


@hookimpl
def register_architectures() -> list[Architecture]:
    return [
        Architecture(
            "denoised/",
            build,
            summary="a DnCNN denoiser in front of a network, such as denoised/resnet20",
            options=None,
            file_options=None,
            initial_options=("denoiser", "classifier", "pretrained"),
            normalizes=True,
            example="lenet",
            denoise=denoise,
        )
    ]
