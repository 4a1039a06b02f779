"""Consistency regularization (Jeong and Shin, NeurIPS 2020): noise samples of an image should agree."""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from smoothctl import AttackOptions, Batch, Method, Recipe, attack_batch, hookimpl, log_averaged_softmax


class Consistency(Method):
    """Cross-entropy on m noise samples, their divergence from their mean, and the entropy of the mean."""

    name = "consistency"
    summary = "agreement of m noise samples, on top of gaussian or smoothadv (Jeong and Shin 2020)"
    # Published code cuts a batch of 256 (ImageNet: 200) into m chunks and steps after each.
    recipes = (
        *(
            Recipe(
                dataset="cifar10", sigma=sigma, name="jeong2020", arch="resnet110", epochs=150, batch_size=128, lr=0.1,
                weight_decay=1e-4, milestones=(50, 100), options={"lbd": lbd, "eta": 0.5, "m": 2}, source=source,
            )
            for sigma, lbd, source in (
                (0.25, 20.0, "Jeong and Shin 2020 and CRT paper, table 17; a batch of 256 in 2 chunks"),
                (0.5, 10.0, "Jeong and Shin 2020, code; a batch of 256 in 2 chunks"),
                (1.0, 10.0, "Jeong and Shin 2020, code; a batch of 256 in 2 chunks"),
            )
        ),
        *(
            Recipe(
                dataset="mnist", sigma=sigma, name="jeong2021", arch="lenet", epochs=90, batch_size=128, lr=0.01,
                weight_decay=1e-4, milestones=(30, 60), options={"lbd": lbd, "eta": 0.5, "m": 2},
                source="baseline of Jeong et al. 2021 (SmoothMix), code; a batch of 256 in 2 chunks",
            )
            for sigma, lbd in ((0.25, 10.0), (0.5, 5.0), (1.0, 5.0))
        ),
        *(
            Recipe(
                dataset="cifar10", sigma=sigma, name="smoothadv", arch="resnet110", epochs=150, batch_size=256 // m,
                lr=0.1, weight_decay=1e-4, milestones=(50, 100),
                options={"base": "smoothadv", "lbd": lbd, "eta": 0.5, "m": m, "steps": 10, "epsilon": epsilon},
                source=f"Jeong and Shin 2020, code, on smoothadv; a batch of 256 in {m} chunks",
            )
            for sigma, lbd, m, epsilon in ((0.25, 2.0, 4, 1.0), (0.5, 1.0, 2, 2.0), (1.0, 1.0, 2, 2.0))
        ),
        Recipe(
            dataset="mnist", name="smoothadv", arch="lenet", epochs=90, batch_size=64, lr=0.01, weight_decay=1e-4,
            milestones=(30, 60),
            options={"base": "smoothadv", "lbd": 1.0, "eta": 0.5, "m": 4, "steps": 10, "epsilon": 1.0},
            source="the smoothadv baseline of Jeong and Shin 2020, code, with smoothctl's weight for consistency; a "
            "batch of 256 in 4 chunks",
        ),
        *(
            Recipe(
                dataset="imagenet", sigma=sigma, arch="resnet50", epochs=90, batch_size=100, lr=0.1, weight_decay=1e-4,
                milestones=(30, 60), options={"lbd": 5.0, "eta": eta, "m": 2},
                source="Jeong and Shin 2020, supplement and published logs; a batch of 200 in 2 chunks",
            )
            for sigma, eta in ((0.5, 0.5), (1.0, 0.1))
        ),
        Recipe(
            dataset="digits", name="smoothctl", options={"lbd": 5.0, "eta": 0.5, "m": 2},
            source="smoothctl's default for digits, after the MNIST setting of Jeong and Shin 2020",
        ),
        Recipe(
            dataset="digits", name="smoothadv", epochs=30,
            options={"base": "smoothadv", "lbd": 5.0, "eta": 0.5, "m": 2, "steps": 2, "epsilon": 0.25},
            source="smoothctl's default for digits, on smoothadv",
        ),
    )  # fmt: skip

    class Options(AttackOptions):
        lbd: float = Field(10.0, ge=0, description="weight of the divergence (lambda of the paper)")
        eta: float = Field(0.5, ge=0, description="weight of the entropy of the mean answer")
        m: int = Field(2, ge=2, description="noise samples of each image in a step")
        base: Literal["gaussian", "smoothadv"] = Field(
            "gaussian",
            description="what it is added to; smoothadv first attacks the images, by attack, steps, epsilon and "
            "warmup_epochs, under the same noise",
        )

    def loss(self, model: nn.Module, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """CE + lbd * mean_i KL(mean || sample i) + eta * H(mean), the mean being that of probabilities."""
        samples = self.options.m
        noise = batch.noise(samples)
        attacked = self.options.base == "smoothadv"
        x = attack_batch(model, batch, noise, self.options) if attacked else batch.x
        logits = model(x.repeat(samples, 1, 1, 1) + noise)
        log_mean = log_averaged_softmax(logits, samples)
        mean = log_mean.exp()
        entropy = -(mean * log_mean).sum(dim=1)
        # sum_c mean_c (log mean_c - log p_c), averaged over samples
        log_p = logits.log_softmax(dim=1).unflatten(0, (samples, -1)).mean(dim=0)
        divergence = -entropy - (mean * log_p).sum(dim=1)
        cross_entropy = F.cross_entropy(logits, batch.y.repeat(samples))
        parts = {"cross_entropy": cross_entropy, "divergence": divergence.mean(), "entropy": entropy.mean()}
        return cross_entropy + self.options.lbd * parts["divergence"] + self.options.eta * parts["entropy"], parts


@hookimpl
def register_methods() -> list[type[Method]]:
    return [Consistency]
