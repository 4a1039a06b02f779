"""Confidence-aware training, CAT-RS (Jeong, Kim and Shin, AAAI 2023)."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from smoothctl import Batch, Method, Recipe, ascent_direction, attacking, hookimpl, log_averaged_softmax


class CatRs(Method):
    """Learn the easiest noise samples of images with little confidence, the hardest of those with much."""

    name = "cat-rs"
    summary = (
        "confidence-aware training: easy samples of uncertain images, worst samples of sure ones (Jeong et al. 2023)"
    )
    takes_teacher = True
    # Published code cuts a batch of 256 into m chunks and steps after each: 256/m images a step.
    recipes = (
        *(
            Recipe(
                dataset="cifar10", sigma=sigma, arch="resnet110", epochs=150, batch_size=64, lr=0.1, weight_decay=1e-4,
                milestones=(50, 100), options={"m": 4, "steps": 4, "epsilon": 1.0, "lbd": lbd},
                source="Jeong et al. 2023, code; a batch of 256 in 4 chunks",
            )
            for sigma, lbd in ((0.25, 0.5), (0.5, 1.0), (1.0, 2.0))
        ),
        Recipe(
            dataset="mnist", arch="lenet", epochs=150, batch_size=64, lr=0.01, weight_decay=1e-4,
            milestones=(50, 100), options={"m": 4, "steps": 4, "epsilon": 1.0, "lbd": 1.0},
            source="smoothctl's default, after the CIFAR-10 setting of Jeong et al. 2023 at the rate of MNIST",
        ),
        Recipe(
            dataset="imagenet", sigma=1.0, arch="resnet50", epochs=90, batch_size=128, lr=0.1, weight_decay=1e-4,
            milestones=(30, 60), options={"m": 2, "steps": 1, "epsilon": 1.0, "lbd": 2.0, "confidence": "teacher"},
            source="Jeong et al. 2023, code, without its changes in the last ten epochs; a batch of 256 in 2 chunks",
        ),
        Recipe(
            dataset="digits", epochs=25, options={"m": 4, "steps": 1, "epsilon": 0.5, "lbd": 0.5},
            source="smoothctl's default for digits, after Jeong et al. 2023",
        ),
    )  # fmt: skip

    class Options(Method.Options):
        m: int = Field(4, ge=1, description="noise samples of each image in a step (M of the paper)")
        lbd: float = Field(1.0, ge=0, description="weight of the worst-case term (lambda of the paper)")
        steps: int = Field(4, ge=1, description="steps of the attack on the noise")
        epsilon: float = Field(1.0, gt=0, description="largest L2 norm by which a noise is moved, in pixels in [0,1]")
        teacher_noise: Literal["own", "student"] = Field(
            "own",
            description="the sigma of the noise on which a teacher votes: its own (published: a teacher of 0.25 for "
            "every sigma), or the student's",
        )
        confidence: Literal["model", "teacher"] = Field(
            "model",
            description="whose share of right noise samples is the confidence from which K is drawn (teacher: "
            "--confidence_mask of the authors' code, with a teacher only)",
        )

    def loss(self, model: nn.Module, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """Mean of the K lowest cross-entropies over m + lbd * [K = m] * worst KL(target || moved sample).

        K ~ Binomial(m, confidence), at least 1; the confidence is the share of noise samples that are right, of
        the model or of the teacher. The targets are the teacher's votes on the same noise at its own sigma (the paper
        takes those of a Gaussian-trained classifier, over 10,000 noise samples, beforehand), or without a teacher
        the averaged softmax of the model itself.
        """
        options, samples = self.options, self.options.m
        x, noise, y = batch.x.repeat(samples, 1, 1, 1), batch.noise(samples), batch.y
        logits = model(x + noise)
        targets = self._targets(batch, x, noise, logits.detach())
        losses = F.cross_entropy(logits, y.repeat(samples), reduction="none").unflatten(0, (samples, -1))
        right = (logits.argmax(dim=1) == y.repeat(samples)).float().unflatten(0, (samples, -1)).mean(dim=0)
        by_teacher = options.confidence == "teacher" and batch.teacher is not None
        confidence = targets.gather(1, y.view(-1, 1)).squeeze(1) if by_teacher else right
        accepted = (batch.uniform(samples).unflatten(0, (samples, -1)) < confidence).sum(dim=0).clamp_min(1)
        ranks = torch.arange(samples, device=x.device).view(-1, 1)
        low = (losses.sort(dim=0).values * (ranks < accepted)).mean(dim=0)
        moved = self._attack(model, x, noise, targets)
        answers = model(x + moved).log_softmax(dim=1)
        worst = _divergence(answers, targets).unflatten(0, (samples, -1)).amax(dim=0)
        sure = (accepted == samples).float()
        high = sure * worst
        loss = (low + options.lbd * high).mean()
        return loss, {"low": low.mean(), "high": high.mean(), "sure": sure.mean()}

    @property
    def takes_any_sigma(self) -> bool:
        return bool(self.options.teacher_noise == "own")

    def _targets(self, batch: Batch, x: Tensor, noise: Tensor, logits: Tensor) -> Tensor:
        """Probabilities [B,K] that sure images should keep when their noise is moved."""
        samples = self.options.m
        if batch.teacher is None:
            return log_averaged_softmax(logits, samples).exp()
        if self.options.teacher_noise == "own" and batch.teacher_sigma:
            noise = noise * (batch.teacher_sigma / batch.sigma)
        taught = batch.teacher(x + noise)
        votes = F.one_hot(taught.argmax(dim=1), taught.shape[1]).float()
        shares: Tensor = votes.unflatten(0, (samples, -1)).mean(dim=0)
        return shares

    def _attack(self, model: nn.Module, x: Tensor, noise: Tensor, targets: Tensor) -> Tensor:
        """Noises [m*B,...] moved by at most epsilon away from the targets, with their mean and scale kept."""
        options, moved = self.options, noise
        with attacking(model):
            for _ in range(options.steps):
                at = moved.detach().requires_grad_()
                values = _divergence(model(x + at).log_softmax(dim=1), targets)
                step = 2 * options.epsilon / options.steps * ascent_direction(values, at)
                moved = _like(noise + (moved + step - noise).renorm(2, 0, options.epsilon), noise)
        return moved


def _divergence(log_p: Tensor, targets: Tensor) -> Tensor:
    """KL(targets || p) a sample, [m*B], from log-probabilities [m*B,K] and targets [B,K]."""
    wanted = targets.repeat(len(log_p) // len(targets), 1)
    divergence: Tensor = (torch.xlogy(wanted, wanted) - wanted * log_p).sum(dim=1)
    return divergence


def _like(moved: Tensor, noise: Tensor) -> Tensor:
    """Give each noise the mean and root mean square that it had before it was moved.

    The authors' code divides by the root mean square where this has the standard deviation, which keeps both only
    as far as means vanish.
    """
    dims = (1, 2, 3)
    centred, before = (values - values.mean(dims, keepdim=True) for values in (moved, noise))
    scale = torch.linalg.vector_norm(before, dim=dims, keepdim=True)
    own_scale = torch.linalg.vector_norm(centred, dim=dims, keepdim=True).clamp_min(torch.finfo(noise.dtype).tiny)
    like: Tensor = noise.mean(dims, keepdim=True) + centred * (scale / own_scale)
    return like


@hookimpl
def register_methods() -> list[type[Method]]:
    return [CatRs]
