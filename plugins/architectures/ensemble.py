"""Several networks averaged as one base classifier (Horvath et al., ICLR 2022, average their logits)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from smoothctl import Architecture, ModelSpec, Trained, UsageError, build_classifier, hookimpl

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Ensemble(nn.Module):
    """The mean of the members' logits, or the logarithm of the mean of their probabilities."""

    def __init__(self, members: Sequence[nn.Module], average: str):
        super().__init__()
        self.members = nn.ModuleList(members)
        self.average = average

    def forward(self, x: Tensor) -> Tensor:
        """Logits [B,K] of pixels [B,C,H,W]."""
        logits = torch.stack([member(x) for member in self.members])
        if self.average == "softmax":
            return logits.log_softmax(dim=2).exp().mean(dim=0).clamp_min(1e-30).log()
        return logits.mean(dim=0)


def build(spec: ModelSpec) -> nn.Module:
    """``ensemble/resnet20+resnet20``: members by name, each with a normalising layer of its own.

    Options: ``average`` is logits or softmax; ``members`` lists options per member (files of
    ensembles have it); any other goes to every member.
    """
    options = dict(spec.options)
    average = options.pop("average", "logits")
    if average not in ("logits", "softmax"):
        raise UsageError(f"--arch-option average={average}: it is logits or softmax")
    names = spec.name.split("+")
    own: Sequence[Mapping[str, Any]] = options.pop("members", [{}] * len(names))
    members = [
        build_classifier(
            name, spec.num_classes, spec.input_shape, {**options, **chosen}, spec.mean, spec.std,
            persistent=True,
        )
        for name, chosen in zip(names, own, strict=True)
    ]  # fmt: skip
    return Ensemble(members, average)


def average(members: Sequence[Trained]) -> Trained:
    """Trained networks as an ensemble; its sigma is theirs, if they share it."""
    state = {
        f"members.{place}.{key}": value for place, member in enumerate(members) for key, value in member.state.items()
    }
    sigmas = {member.sigma for member in members}
    return Trained(
        "ensemble/" + "+".join(member.arch for member in members),
        {"members": [dict(member.options) for member in members]},
        state,
        members[0].input_shape,
        sigmas.pop() if len(sigmas) == 1 else None,
    )


@hookimpl
def register_architectures() -> list[Architecture]:
    return [
        Architecture(
            "ensemble/",
            build,
            summary="networks averaged as one, such as ensemble/resnet20+resnet20",
            options=None,
            file_options=None,
            initial_options=("pretrained",),
            normalizes=True,
            example="lenet+lenet",
            average=average,
        )
    ]
