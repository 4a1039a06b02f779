"""Several networks averaged as one base classifier (Horvath et al., ICLR 2022, average their logits)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from smoothctl import Architecture, ModelSpec, Trained, UsageError, build_classifier, hookimpl

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Ensemble(nn.Module):
    """The mean of the members' logits, or the logarithm of the mean of their probabilities.

    consensus: in evaluation, members after so many are asked only about images on which these do not agree, and the
    mean is over those that were asked (K-consensus, Horvath et al. 2022). None asks all.
    """

    def __init__(self, members: Sequence[nn.Module], average: str, consensus: int | None = None):
        super().__init__()
        self.members = nn.ModuleList(members)
        self.average = average
        self.consensus = consensus

    def forward(self, x: Tensor) -> Tensor:
        """Logits [B,K] of pixels [B,C,H,W]."""
        if self.training or self.consensus is None:
            return self._mean([member(x) for member in self.members])
        first = [member(x) for member in self.members[: self.consensus]]
        answers = torch.stack([logits.argmax(1) for logits in first])
        open_ = (answers != answers[0]).any(0)
        result = self._mean(first)
        if open_.any():
            others = [member(x[open_]) for member in self.members[self.consensus :]]
            result[open_] = self._mean([*(logits[open_] for logits in first), *others])
        return result

    def _mean(self, members: Sequence[Tensor]) -> Tensor:
        logits = torch.stack(list(members))
        if self.average == "softmax":
            return logits.log_softmax(dim=2).exp().mean(dim=0).clamp_min(1e-30).log()
        return logits.mean(dim=0)


def build(spec: ModelSpec) -> nn.Module:
    """``ensemble/resnet20+resnet20``: members by name, each with a normalising layer of its own.

    Options: ``average`` is logits or softmax; ``consensus`` is how many members must agree for the others not to be
    asked; ``members`` lists options per member (files of ensembles have it); any other goes to every member.
    """
    options = dict(spec.options)
    average = options.pop("average", "logits")
    if average not in ("logits", "softmax"):
        raise UsageError(f"`arch_options=average={average}`: it is logits or softmax")
    names = spec.name.split("+")
    consensus = _consensus(options.pop("consensus", None), len(names))
    own: Sequence[Mapping[str, Any]] = options.pop("members", [{}] * len(names))
    members = [
        build_classifier(
            name, spec.num_classes, spec.input_shape, {**options, **chosen}, spec.mean, spec.std,
            persistent=True,
        )
        for name, chosen in zip(names, own, strict=True)
    ]  # fmt: skip
    return Ensemble(members, average, consensus)


def _consensus(value: Any, members: int) -> int | None:
    """How many members must agree; None asks all. Raises UsageError for what is no number of several members."""
    if value is None:
        return None
    text = str(value)
    if not text.isdecimal() or not 2 <= int(text) <= members:
        raise UsageError(f"`arch_options=consensus={value}`: it is a number from 2 to {members}, that of the members")
    return int(text)


def average(members: Sequence[Trained], options: Mapping[str, Any]) -> Trained:
    """Trained networks as an ensemble; its sigma is theirs, if they share it."""
    state = {
        f"members.{place}.{key}": value for place, member in enumerate(members) for key, value in member.state.items()
    }
    sigmas = {member.sigma for member in members}
    return Trained(
        "ensemble/" + "+".join(member.arch for member in members),
        {**options, "members": [dict(member.options) for member in members]},
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
