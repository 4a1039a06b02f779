"""Settings of a training run that a paper, or a dataset, recommends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Recipe:
    """Settings of a training run. What is None is left to the dataset's recipe or the defaults.

    A method lists its recipes; a dataset has one of its own. Of several for one dataset and sigma the
    first is used, and ``name`` is how ``--recipe`` asks for another, or for one without a dataset, which
    serves any. ``source`` says where the numbers
    come from. ``batch_size`` counts images of one optimiser step; ``milestones`` are the epochs (counted
    from 0) at whose start the learning rate is multiplied by ``gamma``. ``by_arch`` holds what is
    different for an architecture, such as ``{"vit": {"lr": 0.01}}``.
    """

    dataset: str | None = None
    sigma: float | None = None
    arch: str | None = None
    epochs: int | None = None
    batch_size: int | None = None
    lr: float | None = None
    momentum: float | None = None
    weight_decay: float | None = None
    milestones: tuple[int, ...] | None = None
    gamma: float | None = None
    schedule: str | None = None
    warmup_epochs: int | None = None
    optimizer: str | None = None
    nesterov: bool | None = None
    clip: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    name: str = ""
    by_arch: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
