"""MACER (Zhai et al., ICLR 2020): training that maximises the certified radius, without attacks."""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from smoothctl import Batch, Method, Recipe, hookimpl, log_averaged_softmax

TINY = 1e-300


class Macer(Method):
    """Cross-entropy of the averaged softmax, and a hinge on the radius of images that it has right."""

    name = "macer"
    summary = "maximise the certified radius of the soft smoothed classifier (Zhai et al. 2020)"
    recipes = (
        *(
            Recipe(
                dataset="cifar10", sigma=sigma, name="zhai2020", arch="resnet110", epochs=440, batch_size=64, lr=0.01,
                weight_decay=5e-4, milestones=(200, 400),
                options={"k": 16, "beta": 16.0, "gamma": 8.0, "lbd": lbd, "deferred": deferred},
                source=source,
            )
            for sigma, lbd, deferred, source in (
                (0.25, 12.0, 0, "Zhai et al. 2020, code (CRT paper, table 16, says weight decay 1e-4)"),
                (0.5, 4.0, 0, "Zhai et al. 2020"),
                (1.0, 12.0, 200, "Zhai et al. 2020: only the cross-entropy before the first drop of the rate"),
            )
        ),
        *(
            Recipe(
                dataset="cifar10", sigma=sigma, name="150-epochs", arch="resnet110", epochs=150, batch_size=64, lr=0.01,
                weight_decay=5e-4, milestones=(50, 100),
                options={"k": 16, "beta": 16.0, "gamma": 8.0, "lbd": lbd, "deferred": deferred},
                source="options of Zhai et al. 2020 with the 150 epochs of Jeong and Shin 2020",
            )
            for sigma, lbd, deferred in ((0.25, 12.0, 0), (0.5, 4.0, 0), (1.0, 12.0, 50))
        ),
        *(
            Recipe(
                dataset="mnist", sigma=sigma, arch="lenet", epochs=90, batch_size=256, lr=0.01, weight_decay=1e-4,
                milestones=(30, 60), options={"k": 16, "beta": 16.0, "gamma": 8.0, "lbd": lbd, "deferred": 31},
                source="baseline of Jeong and Shin 2020, code",
            )
            for sigma, lbd in ((0.25, 16.0), (0.5, 16.0), (1.0, 6.0))
        ),
        Recipe(
            dataset="imagenet", sigma=0.5, arch="resnet50", epochs=120, batch_size=256, lr=0.1, weight_decay=1e-4,
            milestones=(30, 60, 90), options={"k": 2, "beta": 16.0, "gamma": 8.0, "lbd": 3.0, "deferred": 0},
            source="CRT paper (NeurIPS 2022), tables 16 and 17",
        ),
        Recipe(
            dataset="digits", epochs=30, options={"k": 4, "beta": 16.0, "gamma": 4.0, "lbd": 2.0, "deferred": 20},
            source="smoothctl's default for digits, after Zhai et al. 2020, deferred as for MNIST",
        ),
    )  # fmt: skip

    class Options(Method.Options):
        k: int = Field(16, ge=1, description="noise samples of each image in a step")
        beta: float = Field(
            16.0,
            gt=0,
            description="inverse temperature of the radius; a later paper writes it into the cross-entropy too, the "
            "authors' code does not, and neither does this",
        )
        gamma: float = Field(8.0, gt=0, description="margins above this are not pushed further")
        lbd: float = Field(12.0, ge=0, description="weight of the radius (lambda of the paper)")
        deferred: int = Field(
            0, ge=0, description="epochs at the start with cross-entropy only", json_schema_extra={"unit": "epochs"}
        )

    def loss(self, model: nn.Module, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """Cross-entropy of the averaged softmax + lbd * sigma/2 * max(0, gamma - margin) of images that are right.

        ``pushed`` counts the share of images on which the radius term acts, ``confident`` that of images
        whose margin is beyond gamma already.
        """
        options, samples = self.options, self.options.k
        logits = model(batch.noisy(samples))
        cross_entropy = F.nll_loss(log_averaged_softmax(logits, samples), batch.y)
        margin, right = _margin(logits, samples, options.beta, batch.y)
        hinge = (options.gamma - margin).clamp_min(0) * right
        radius = batch.sigma / 2 * hinge.mean().to(cross_entropy.dtype)
        weight = 0.0 if batch.epoch < options.deferred else options.lbd
        parts = {
            "cross_entropy": cross_entropy,
            "radius_hinge": radius,
            "pushed": (right & (margin < options.gamma)).float().mean(),
            "confident": (right & (margin >= options.gamma)).float().mean(),
        }
        return cross_entropy + weight * radius, parts


def _margin(logits: Tensor, samples: int, beta: float, y: Tensor) -> tuple[Tensor, Tensor]:
    """Phi^-1(p_A) - Phi^-1(p_B) of the averaged softmax at inverse temperature beta, [B], and where A is the label.

    In float64, and p_A by its distance to one: what float32 rounds to 0 or 1 stays finite and keeps its gradient.
    """
    precise = logits.cpu() if logits.device.type == "mps" else logits
    vote = log_averaged_softmax(beta * precise.double(), samples)
    values, places = vote.topk(2, dim=1)
    rest = vote.scatter(1, places[:, :1], -torch.inf).logsumexp(dim=1)
    margin = -_quantile(rest) - _quantile(values[:, 1])
    return margin.to(logits.device), places[:, 0].to(y.device) == y


def _quantile(log_p: Tensor) -> Tensor:
    """Phi^-1 of a probability given by its logarithm."""
    quantile: Tensor = torch.special.ndtri(log_p.exp().clamp_min(TINY))
    return quantile


@hookimpl
def register_methods() -> list[type[Method]]:
    return [Macer]
