"""One optimiser step: timm's optimisers, mixed precision, clipping, and the average of the weights."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from smoothctl.base.errors import UsageError
from smoothctl.base.names import did_you_mean
from smoothctl.training.initial import split_parameters
from smoothctl.training.settings import TrainSettings

# timm's "sgd" has Nesterov momentum, which no published recipe of this field uses in code.
SGD = {False: "momentum", True: "sgd"}


class Optimization:
    """Changes a model's parameters step by step, and keeps an average of them if that is wanted."""

    def __init__(self, model: nn.Module, settings: TrainSettings, device: torch.device, classes: int = 0):
        self.settings = settings
        self.optimizer = build_optimizer(model, settings, classes)
        self.scaler = torch.amp.GradScaler(device.type, enabled=settings.precision == "fp16")
        self.average: AveragedModel | None = None
        if settings.ema is not None:
            self.average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(settings.ema), use_buffers=True)
        self._model = model

    @property
    def trained(self) -> nn.Module:
        """The module whose weights count: the average, if there is one."""
        return self._model if self.average is None else self.average.module

    def step(self, loss: Tensor, rate: float) -> None:
        """Go one step down the gradient of the loss."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group.get("lr_scale", 1.0)
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
        if self.settings.clip is not None:
            self.scaler.unscale_(self.optimizer)
            nn.utils.clip_grad_norm_(self._model.parameters(), self.settings.clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        if self.average is not None:
            self.average.update_parameters(self._model)

    def state_dict(self) -> dict[str, Any]:
        """All that going on needs, apart from the model's weights."""
        state = {"optimizer": self.optimizer.state_dict(), "scaler": self.scaler.state_dict()}
        if self.average is not None:
            state["average"] = self.average.state_dict()
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a state; one that does not fit raises whatever the optimiser does."""
        self.optimizer.load_state_dict(state["optimizer"])
        _try_step(self.optimizer)
        self.scaler.load_state_dict(state["scaler"])
        if self.average is not None:
            self.average.load_state_dict(state["average"])


def _try_step(optimizer: torch.optim.Optimizer) -> None:
    """Take a step with a copy: optimisers look at what they have loaded only then."""
    trial = copy.deepcopy(optimizer)
    for group in trial.param_groups:
        for parameter in group["params"]:
            parameter.grad = torch.zeros_like(parameter)
    trial.step()


def build_optimizer(model: nn.Module, settings: TrainSettings, classes: int = 0) -> torch.optim.Optimizer:
    """The optimiser of a name, from timm's factory; weight decay is on all parameters, as published.

    Where layers before the last learn more slowly, they are a group of their own, or are frozen.

    Raises UsageError for a name that timm does not know, or an optimiser that cannot be used here.
    """
    from timm.optim import create_optimizer_v2, get_optimizer_info, list_optimizers  # type: ignore[attr-defined]

    name = SGD[settings.nesterov] if settings.optimizer == "sgd" else settings.optimizer
    known = list(map(str, list_optimizers()))
    if name not in known:
        hint = did_you_mean(name, known) or "timm's names are known, such as adamw, lamb or lion."
        raise UsageError(f"`optimizer={settings.optimizer}`: there is no such optimiser. {hint}")
    if get_optimizer_info(name).second_order:
        raise UsageError(f"`optimizer={name}` needs second derivatives, which training here does not compute")
    try:
        optimizer: torch.optim.Optimizer = create_optimizer_v2(
            _groups(model, settings, classes),
            opt=name,
            lr=settings.lr,
            weight_decay=settings.weight_decay,
            momentum=settings.momentum,
            filter_bias_and_bn=False,
        )
    except (AssertionError, ImportError, RuntimeError, ValueError, TypeError) as error:
        raise UsageError(f"`optimizer={name}` cannot be used here: {' '.join(str(error).split())}") from None
    return optimizer


def _groups(model: nn.Module, settings: TrainSettings, classes: int) -> Any:
    """The model, or its layers before the last and the last one, with the factor of each one's rate."""
    if settings.lr_layers == 1:
        return model
    body, head = split_parameters(model, classes)
    if settings.lr_layers:
        return [{"params": body, "lr_scale": settings.lr_layers}, {"params": head, "lr_scale": 1.0}]
    for parameter in body:
        parameter.requires_grad_(False)
    return [{"params": head, "lr_scale": 1.0}]
