"""SmoothMix (Jeong et al., NeurIPS 2021): mixing images with over-confident points far along an attack."""

from __future__ import annotations

import math

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from smoothctl import (
    Batch,
    Method,
    Recipe,
    ascent_direction,
    attacking,
    hookimpl,
    log_averaged_softmax,
    soft_cross_entropy,
)


class SmoothMix(Method):
    """Between an image and its adversary the answer should fade from its own to no answer at all."""

    name = "smoothmix"
    summary = "mix images with their adversaries and answers with the uniform one (Jeong et al. 2021)"
    # Published code cuts a batch of 256 into m chunks and steps after each: 256/m images a step.
    recipes = (
        *(
            Recipe(
                dataset="cifar10", sigma=sigma, name=name, arch="resnet110", epochs=150, batch_size=128, lr=0.1,
                weight_decay=1e-4, milestones=(50, 100),
                options={"T": 4, "m": 2, "eta": 5.0, "alpha": alpha, "mix_step": mix_step},
                by_arch={"vit": {"lr": 0.01}}, source=f"Jeong et al. 2021{what}; a batch of 256 in 2 chunks",
            )
            for name, mix_step, what in (
                ("jeong2021", 0, "; CRT paper, tables 16, 17 (with the rate for vit)"),
                ("one-step", 1, ", the variant that learns one-step adversaries"),
            )
            for sigma, alpha in ((0.25, 0.5), (0.5, 1.0), (1.0, 2.0))
        ),
        *(
            Recipe(
                dataset="mnist", sigma=sigma, name=name, arch="lenet", epochs=90, batch_size=64, lr=0.01,
                weight_decay=1e-4, milestones=(30, 60), options={"T": steps, "m": 4, "eta": eta, "alpha": 1.0},
                source=f"Jeong et al. 2021, code (eta {eta:g}); a batch of 256 in 4 chunks",
            )
            for name, eta in (("jeong2021", 5.0), ("eta-1", 1.0))
            for sigma, steps in ((0.25, 2), (0.5, 4), (1.0, 8))
        ),
        Recipe(
            dataset="imagenet", arch="resnet50", epochs=90, batch_size=400, lr=0.1, weight_decay=1e-4,
            milestones=(30, 60), options={"T": 1, "m": 1, "eta": 1.0, "alpha": 8.0},
            source="CRT paper (NeurIPS 2022), tables 16 and 17",
        ),
        Recipe(
            dataset="digits", epochs=30, options={"T": 2, "m": 2, "eta": 1.0, "alpha": 0.5},
            source="smoothctl's default for digits, after Jeong et al. 2021",
        ),
    )  # fmt: skip

    class Options(Method.Options):
        T: int = Field(4, ge=1, description="steps of the attack")
        alpha: float = Field(0.5, gt=0, description="length of a step of the attack, in pixels in [0,1]")
        m: int = Field(2, ge=1, description="noise samples of each image, the same for the attack and both losses")
        eta: float = Field(5.0, ge=0, description="weight of the mixed loss")
        mix_step: int = Field(
            0,
            ge=0,
            description="0: images are learnt as they are; K: as they are after K steps of the attack (1: the one-step "
            "adversary of the paper)",
        )
        max_norm: float | None = Field(
            None, gt=0, description="largest L2 norm of the attack; the paper and its code leave it unbounded"
        )
        warmup_epochs: int = Field(
            10,
            ge=0,
            description="epochs in which eta, and mix_step's norm, grow to their value",
            json_schema_extra={"unit": "epochs"},
        )

        @property
        def start_norm(self) -> float:
            """How far the images that are learnt may be from the clean ones."""
            return self.alpha * self.mix_step

    def loss(self, model: nn.Module, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """CE(start) + eta * KL(mixed answers || answers to mixed images), the latter where the vote is right.

        Images that the vote has wrong count as zero in the mean; gradients also flow through the mixed
        answers, as in the authors' code.
        """
        options, samples = self.options, self.options.m
        warm = min(1.0, (batch.epoch + 1) / max(1, options.warmup_epochs))
        noise = batch.noise(samples)
        start, adversary = self._attack(model, batch, noise, warm)
        logits = model(start.repeat(samples, 1, 1, 1) + noise)
        cross_entropy = F.cross_entropy(logits, batch.y.repeat(samples))
        vote = log_averaged_softmax(logits, samples).exp()
        right = (vote.argmax(dim=1) == batch.y).float()
        share = batch.uniform() / 2
        column, image = share.view(-1, 1), share.view(-1, 1, 1, 1)
        answers = (1 - column) * vote + column / vote.shape[1]
        mixed_logits = model(((1 - image) * start + image * adversary).repeat(samples, 1, 1, 1) + noise)
        log_p = mixed_logits.log_softmax(dim=1).unflatten(0, (samples, -1)).mean(dim=0)
        log_answers = answers.clamp_min(torch.finfo(answers.dtype).tiny).log()
        mixed = (right * (answers * (log_answers - log_p)).sum(dim=1)).mean()
        return cross_entropy + options.eta * warm * mixed, {
            "cross_entropy": cross_entropy, "mixed": mixed, "right": right.mean(),
        }  # fmt: skip

    def _attack(self, model: nn.Module, batch: Batch, noise: Tensor, warm: float) -> tuple[Tensor, Tensor]:
        """The images that are learnt, and those T steps of length alpha up the soft cross-entropy."""
        options, x = self.options, batch.x
        start = at = x
        with attacking(model):
            for step in range(options.T):
                if step == options.mix_step:
                    start = at
                leaf = at.detach().requires_grad_()
                logits = model(leaf.repeat(options.m, 1, 1, 1) + noise)
                direction = ascent_direction(soft_cross_entropy(logits, batch.y), leaf)
                at = _within(x, at + options.alpha * direction, options.max_norm or math.inf)
        if options.mix_step >= options.T:
            start = at
        return _within(x, start, options.start_norm * warm), at


def _within(x: Tensor, moved: Tensor, norm: float) -> Tensor:
    """``moved``, at most ``norm`` away from x, and in [0,1]."""
    if norm == 0:
        return x
    if norm == math.inf:
        return moved.clamp(0, 1)
    return (x + (moved - x).renorm(2, 0, norm)).clamp(0, 1)


@hookimpl
def register_methods() -> list[type[Method]]:
    return [SmoothMix]
