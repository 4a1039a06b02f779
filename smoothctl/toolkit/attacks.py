"""Attacks on the soft smoothed classifier (Salman et al. 2019), for training methods that need one.

Gradients are those of the network in eval mode; its buffers and its parameters' gradients stay as they
are. All noise samples of a step go through the network in one pass. Images are pixels in [0,1].
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from smoothctl.base.devices import eval_mode
from smoothctl.hooks.methods import Batch, Method
from smoothctl.toolkit.averaged_softmax import log_averaged_softmax

DDN_GAMMA, DDN_LEVELS, DDN_LAST_RATE = 0.05, 256, 0.01


class AttackOptions(Method.Options):
    """Options of methods that train on adversarial images."""

    attack: Literal["pgd", "ddn"] = Field("pgd", description="projected gradient ascent, or DDN (Rony et al. 2019)")
    steps: int = Field(10, ge=1, description="steps of the attack (T of the paper)")
    epsilon: float = Field(
        1.0,
        gt=0,
        description="largest L2 norm of the perturbation, in pixels in [0,1] (published code takes it in 1/256)",
    )
    warmup_epochs: int = Field(
        10,
        ge=0,
        description="epochs in which epsilon grows to its value; the first has epsilon/warmup_epochs as in published "
        "code (a paper says that it starts from zero)",
        json_schema_extra={"unit": "epochs"},
    )

    def epsilon_at(self, epoch: int) -> float:
        """The norm allowed in an epoch (from 0)."""
        return self.epsilon * min(1.0, (epoch + 1) / max(1, self.warmup_epochs))


def attack_batch(model: nn.Module, batch: Batch, noise: Tensor, options: AttackOptions) -> Tensor:
    """Adversarial images [B,C,H,W] for a batch, found under its noise [samples*B,C,H,W]."""
    epsilon = options.epsilon_at(batch.epoch)
    attack = pgd if options.attack == "pgd" else ddn
    return attack(model, batch.x, batch.y, noise, epsilon, options.steps)


@contextmanager
def attacking(model: nn.Module) -> Iterator[None]:
    """The network as attacks see it: in eval mode, with gradients for its input only."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    with eval_mode(model), torch.enable_grad():
        for parameter in trained:
            parameter.requires_grad_(False)
        try:
            yield
        finally:
            for parameter in trained:
                parameter.requires_grad_(True)


def soft_cross_entropy(logits: Tensor, y: Tensor) -> Tensor:
    """-log of the averaged softmax for the label, [B], from logits [samples*B,K] (Salman et al. 2019, equation 7)."""
    samples = len(logits) // len(y)
    # Relative to the label's logit, whose own part in the gradient of sure images float32 would round to nothing.
    relative = logits - logits.gather(1, y.repeat(samples).unsqueeze(1))
    return F.nll_loss(log_averaged_softmax(relative, samples), y, reduction="none")


def ascent_direction(values: Tensor, at: Tensor) -> Tensor:
    """Gradient [B,...] of the sum of ``values`` at ``at``, of unit L2 norm per image; zero where it vanishes."""
    (gradient,) = torch.autograd.grad(values.sum(), at)
    return _unit(gradient)


def _unit(gradient: Tensor) -> Tensor:
    """Scaled to unit L2 norm per image; zero where it vanishes."""
    tiny = torch.finfo(gradient.dtype).tiny
    # Squares of the small gradients of sure images underflow, so the largest entry becomes one first.
    scaled = gradient / gradient.abs().amax(dim=(1, 2, 3), keepdim=True).clamp_min(tiny)
    return scaled / _norms(scaled).clamp_min(tiny)


def pgd(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    noise: Tensor,
    epsilon: float,
    steps: int,
    step_size: float | None = None,
    batch_size: int | None = None,
) -> Tensor:
    """Projected gradient ascent on the soft smoothed classifier (Salman et al. 2019, algorithm 1).

    ``noise`` [samples*B,C,H,W] is the same at every step. Steps are ``step_size`` long, 2*epsilon/steps if left out;
    each ends in [0,1] and within ``epsilon`` of x [B,C,H,W]. ``batch_size`` bounds the noisy images in a pass, and
    changes the result by rounding only.
    """
    adversarial, length = x, 2 * epsilon / steps if step_size is None else step_size
    parts = noise.split(max(1, (batch_size or len(noise)) // len(x)) * len(x))
    with attacking(model):
        for _ in range(steps):
            moved = (adversarial + length * _ascent(model, adversarial, y, parts)).clamp(0, 1)
            adversarial = x + (moved - x).renorm(2, 0, epsilon)
    return adversarial


def ddn(model: nn.Module, x: Tensor, y: Tensor, noise: Tensor, epsilon: float, steps: int) -> Tensor:
    """Decoupled direction and norm (Rony et al. 2019) on the soft smoothed classifier, within ``epsilon``.

    The smallest perturbation that made the averaged softmax wrong, shortened to ``epsilon`` if it is longer; an image
    for which none did stays clean. Perturbations are tried in steps of 1/255.
    """
    delta, best = torch.zeros_like(x), torch.zeros_like(x)
    norm = x.new_full((len(x), 1, 1, 1), epsilon)
    smallest = torch.full_like(norm, math.inf)
    with attacking(model):
        for step in range(steps):
            at, logits = _perturbed(model, x + delta, noise)
            wrong = (log_averaged_softmax(logits, len(logits) // len(y)).argmax(dim=1) != y).view(-1, 1, 1, 1)
            better = wrong & (_norms(delta) < smallest)
            smallest, best = torch.where(better, _norms(delta), smallest), torch.where(better, delta, best)
            rate = DDN_LAST_RATE + (1 - DDN_LAST_RATE) * (1 + math.cos(math.pi * (step + 1) / steps)) / 2
            delta = delta + rate * ascent_direction(soft_cross_entropy(logits, y), at)
            norm = norm * torch.where(wrong, 1 - DDN_GAMMA, 1 + DDN_GAMMA)
            delta = delta * norm / _norms(delta).clamp_min(torch.finfo(delta.dtype).tiny)
            delta = (x + _quantize(delta)).clamp(0, 1) - x
    return x + best.renorm(2, 0, epsilon)


def _ascent(model: nn.Module, x: Tensor, y: Tensor, parts: Sequence[Tensor]) -> Tensor:
    """Unit direction [B,C,H,W] in which the averaged softmax of the label falls fastest, part by part of the noise.

    The gradient of log(sum of p_k) is the mean of the gradients of log(p_k), weighted by the softmax of log(p_k).
    """
    if len(parts) == 1:
        at, logits = _perturbed(model, x, parts[0])
        return ascent_direction(soft_cross_entropy(logits, y), at)
    gradients, logs = [], []
    for noise in parts:
        at, logits = _perturbed(model, x, noise)
        losses = soft_cross_entropy(logits, y)
        gradients.append(torch.autograd.grad(losses.sum(), at)[0])
        logs.append(math.log(len(noise)) - losses.detach())
    weights = torch.stack(logs).softmax(dim=0)
    return _unit(torch.stack([w.view(-1, 1, 1, 1) * g for w, g in zip(weights, gradients, strict=True)]).sum(dim=0))


def _perturbed(model: nn.Module, x: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Images as a leaf for gradients, and the logits of all their noise samples."""
    at = x.detach().requires_grad_()
    samples = len(noise) // len(x)
    return at, model(at.repeat(samples, 1, 1, 1) + noise)


def _norms(x: Tensor) -> Tensor:
    """L2 norm per image, [B,1,1,1]."""
    norms: Tensor = torch.linalg.vector_norm(x, dim=(1, 2, 3), keepdim=True)
    return norms


def _quantize(delta: Tensor) -> Tensor:
    """Perturbations rounded to multiples of 1/255."""
    return (delta * (DDN_LEVELS - 1)).round() / (DDN_LEVELS - 1)
