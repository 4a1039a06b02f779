"""A training method is held to what the loop relies on."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from smoothctl.base.draws import Draws
from smoothctl.base.errors import SmoothctlError
from smoothctl.hooks.defaults import NOISE
from smoothctl.hooks.methods import Batch, Method
from smoothctl.hooks.registry import registry
from smoothctl.training.objective import Objective

SHAPE, CLASSES = (1, 8, 8), 4
IMAGES = 32
SIGMA = 0.25
REPEATED = 3


def tiny_network(seed: int = 0) -> nn.Module:
    """Two layers, from pixels [B,1,8,8] to logits [B,4]; the same weights for the same seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, CLASSES))


def tiny_batch(key: int = 0, repeated: int = 1, teacher: bool = False) -> Batch:
    """Images [repeated*32,1,8,8] with their labels; an image has the same noise each time, and for the same key."""
    draws, noise = Draws(0, key), registry().find("noise", NOISE).value
    images = Draws(0, 0, 1)
    x, y = images.uniform((IMAGES, *SHAPE)).repeat(repeated, 1, 1, 1), torch.arange(IMAGES).repeat(repeated) % CLASSES
    frozen = tiny_network(1).eval().requires_grad_(False) if teacher else None

    def drawn(draw: Callable[[tuple[int, ...]], Tensor], shape: tuple[int, ...]) -> Tensor:
        few: Tensor = draw((shape[0] // repeated, *shape[1:])).unflatten(0, (-1, IMAGES))
        return few.repeat(1, repeated, *[1] * (few.ndim - 2)).flatten(0, 1)

    return Batch(
        x, y, torch.arange(len(x)), epoch=1, epochs=2, sigma=SIGMA,
        sample_noise=lambda shape: drawn(lambda few: noise.sample(few, SIGMA, draws), shape),
        sample_uniform=lambda shape: drawn(draws.uniform, shape),
        teacher=frozen, teacher_sigma=SIGMA if teacher else None,
    )  # fmt: skip


def check_method(method: type[Method], options: Mapping[str, Any] | None = None) -> None:
    """Hold a method's loss to what the training loop relies on; raise AssertionError with what does not fit.

    One number with finite gradients for every parameter, a mean over images, from no other random numbers than the
    batch's, which it leaves as it is; options are described, and recipes say where they are from.
    """
    name = method.name
    assert method.summary, f"{name}: say in summary what it minimises"
    told = [key for key, field in method.Options.model_fields.items() if not field.description]
    assert not told, f"{name}: its option {told[:1]} has no description"
    assert all(recipe.source for recipe in method.recipes), f"{name}: a recipe does not say its source"
    own = method(method.Options(**(options or {})))
    taught = method.needs_teacher
    value, gradients = _step(own, tiny_batch(teacher=taught), 0)
    for parameter, gradient in gradients.items():
        assert gradient is not None, f"{name}: its loss does not depend on {parameter}"
        assert torch.isfinite(gradient).all(), f"{name}: its gradient is not finite"
    again, same = _step(own, tiny_batch(teacher=taught), 1)
    drawn = torch.equal(value, again) and all(torch.equal(gradients[key], same[key]) for key in gradients)
    assert drawn, f"{name}: it draws random numbers that are not the batch's"
    _check_mean(own, taught)
    if taught:
        with_none = replace(tiny_batch(), teacher=tiny_batch(teacher=True).teacher, teacher_sigma=None)
        _step(own, with_none, 0)  # a teacher file need not say for which sigma it is


def _check_mean(method: Method, taught: bool) -> None:
    """A mean is the same if each image, with its noise, comes several times."""
    few, many = (float(_step(method, tiny_batch(0, times, taught), 0)[0]) for times in (1, REPEATED))
    assert math.isclose(few, many, rel_tol=1e-3, abs_tol=1e-5), (
        f"{method.name}: with every image {REPEATED} times its loss is {many:.6g}, not {few:.6g}; it must be a mean "
        "over the batch's images"
    )


def _step(method: Method, batch: Batch, seed: int) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss and its gradients by parameter, while the global generators are seeded by ``seed``."""
    network, x, y = tiny_network(), batch.x.clone(), batch.y.clone()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002 - a method that draws from here is wrong
        try:
            loss, _ = Objective(network, method)(batch)
        except SmoothctlError as error:
            raise AssertionError(str(error)) from None
        assert torch.isfinite(loss), f"{method.name}: its loss is not finite"
        loss.backward()  # type: ignore[no-untyped-call]
    assert torch.equal(batch.x, x), f"{method.name}: it changes the batch's images"
    assert torch.equal(batch.y, y), f"{method.name}: it changes the batch's labels"
    return loss.detach(), {name: each.grad for name, each in network.named_parameters()}  # type: ignore[misc]
