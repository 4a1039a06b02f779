"""State dicts without what training scripts put around a network: wrappers, prefixes, a first layer's constants."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from smoothctl.models.normalization import Constants
from smoothctl.models.safe_loading import is_counter

WRAPPERS = ("module", "_orig_mod")
MEANS = ("mean", "means", "mu", "new_mean")
DEVIATIONS = ("std", "stds", "sd", "sds", "sigma", "new_std")
# Deeper than any training script nests a network.
LEVELS = 4
MOST_CHANNELS = 64


@dataclass(frozen=True)
class Weights:
    """A state dict and what was taken off it: ``dropped`` are parts of names. ``wrapped``: the network was the
    second layer of a Sequential, behind a first layer that normalizes; ``constants`` are those that were kept."""

    state: Mapping[str, Tensor]
    dropped: tuple[str, ...] = ()
    wrapped: bool = False
    constants: Constants | None = None


def unwrap(state: Mapping[str, Tensor]) -> list[Weights]:
    """The weights as they are, and then with ever more taken off that is not a network's own, each once.

    What may come off: ``module`` and ``_orig_mod`` wherever they are; a prefix that all names share; the constants
    of a normalizing layer, with the name of the network beside it; a child that only repeats what stands beside it.
    """
    found = [Weights(state)]
    seen = {frozenset(state)}
    fresh = found
    for _ in range(LEVELS):
        deeper = []
        for weights in fresh:
            for step in STEPS:
                for made in step(weights):
                    if made.state and (names := frozenset(made.state)) not in seen:
                        seen.add(names)
                        deeper.append(made)
        found, fresh = found + deeper, deeper
    return found


def without_wrappers(state: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """A state dict without ``module`` and ``_orig_mod`` in its names; as it is if two would become one."""
    plain = {".".join(part for part in key.split(".") if part not in WRAPPERS): value for key, value in state.items()}
    return plain if len(plain) == len(state) and "" not in plain else state


def _without_wrappers(weights: Weights) -> Iterator[Weights]:
    parts = {part for key in weights.state for part in key.split(".")}
    yield _named(weights, without_wrappers(weights.state), *(name for name in WRAPPERS if name in parts))


def _without_prefix(weights: Weights) -> Iterator[Weights]:
    """Counters may stand outside, as AveragedModel's does."""
    state = {key: value for key, value in weights.state.items() if "." in key or not is_counter(key)}
    firsts = {key.partition(".")[0] for key in state}
    if len(firsts) == 1 and all("." in key for key in state):
        (prefix,) = firsts
        made = _named(weights, {key.partition(".")[2]: value for key, value in state.items()}, prefix)
        yield replace(made, wrapped=weights.wrapped or prefix == "1")


def _without_copies(weights: Weights) -> Iterator[Weights]:
    """Of a child that holds the same tensors again, as an attacker holds the network that it attacks."""
    for child in {key.partition(".")[0] for key in weights.state if "." in key}:
        own = {key: value for key, value in weights.state.items() if key.startswith(f"{child}.")}
        rest = {key: value for key, value in weights.state.items() if key not in own}
        if len(own) <= len(rest) and all(_is_repeated(key, value, rest) for key, value in own.items()):
            yield _named(weights, rest, child)


def _is_repeated(key: str, value: Tensor, rest: Mapping[str, Tensor]) -> bool:
    """Whether a tensor stands outside the child under the rest of its name; constants may have another layer's name."""
    below, last = key.partition(".")[2], key.rpartition(".")[2]
    names = [name for name in rest if name.rpartition(".")[2] == last] if last in (*MEANS, *DEVIATIONS) else [below]
    return any(name in rest and torch.equal(rest[name], value) for name in names)


def _without_constants(weights: Weights) -> Iterator[Weights]:
    """Of a layer of its own (``0.mean``, ``normalize.std``), or of the network as a whole (``mu``)."""
    constants = {
        key: value
        for key, value in weights.state.items()
        if key.rpartition(".")[2] in (*MEANS, *DEVIATIONS) and value.numel() <= MOST_CHANNELS
    }
    layers = {key.rpartition(".")[0] for key in constants}
    if len(layers) != 1 or len(constants) > 2:
        return
    (layer,) = layers
    read = _read_constants({key.rpartition(".")[2]: value for key, value in constants.items()})
    if read is not None:
        rest = {key: value for key, value in weights.state.items() if key not in constants}
        yield replace(weights, state=rest, dropped=(*weights.dropped, layer or "mean"), constants=read)


def _read_constants(layer: Mapping[str, Tensor]) -> Constants | None:
    mean = next((layer[name] for name in MEANS if name in layer), None)
    if mean is None or not mean.is_floating_point():
        return None
    std = next((layer[name] for name in DEVIATIONS if name in layer), torch.ones_like(mean))
    return tuple(mean.flatten().tolist()), tuple(std.flatten().tolist())


def _named(weights: Weights, state: Mapping[str, Tensor], *dropped: str) -> Weights:
    return replace(weights, state=state, dropped=(*weights.dropped, *dropped))


STEPS: tuple[Callable[[Weights], Iterator[Weights]], ...] = (
    _without_constants, _without_wrappers, _without_prefix, _without_copies,
)  # fmt: skip
