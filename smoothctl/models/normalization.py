"""What ``--normalize`` means: the layer between pixels in [0,1] and a network."""

from __future__ import annotations

import math

from smoothctl.base.errors import UsageError
from smoothctl.hooks.datasets import Dataset
from smoothctl.hooks.registry import registry

Constants = tuple[tuple[float, ...], tuple[float, ...]]


def read_normalize(text: str, dataset: Dataset, channels: int) -> Constants:
    """Mean and std per channel of ``none``, ``center``, a dataset's name, or numbers.

    ``center`` subtracts the mean of ``dataset`` and divides by nothing; numbers are ``mean,std``, once
    for all channels or once each (``m1,m2,m3,s1,s2,s3``). Raises UsageError for anything else.
    """
    if text == "none":
        return (0.0,) * channels, (1.0,) * channels
    if text == "center":
        return of_dataset(dataset, channels)[0], (1.0,) * channels
    numbers = _read_numbers(text)
    if numbers is None:
        try:
            dataset = registry().find("dataset", text).value
        except UsageError as error:
            reason = str(error).split(" Available")[0]
            raise UsageError(f"`normalize` takes none, center, a dataset's name, or mean,std: {reason}") from None
        return of_dataset(dataset, channels)
    if len(numbers) not in (2, 2 * channels):
        raise UsageError(f"`normalize={text}`: give 2 numbers (mean,std), or {2 * channels} for {channels} channels")
    half = len(numbers) // 2
    mean, std = numbers[:half] * (channels // half), numbers[half:] * (channels // half)
    if (wrong := what_is_wrong(mean, std)) is not None:
        raise UsageError(f"`normalize={text}`: {wrong}")
    return mean, std


def what_is_wrong(mean: tuple[float, ...], std: tuple[float, ...]) -> str | None:
    """Why no layer can have these constants; None if one can."""
    if len(mean) != len(std):
        return f"there are {len(mean)} means and {len(std)} standard deviations"
    if not all(map(math.isfinite, (*mean, *std))):
        return "mean and standard deviation must be finite"
    return "standard deviations must be above 0" if min(std) <= 0 else None


def of_dataset(dataset: Dataset, channels: int) -> Constants:
    """A dataset's own mean and std; 0.5 and 0.5 where it states none."""
    mean, std = dataset.mean or (0.5,) * channels, dataset.std or (0.5,) * channels
    if len(mean) != channels:
        raise UsageError(f"`normalize={dataset.name}` is for {len(mean)} channels, the images have {channels}")
    return tuple(mean), tuple(std)


def _read_numbers(text: str) -> tuple[float, ...] | None:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        return None


def describe(mean: tuple[float, ...] | list[float], std: tuple[float, ...] | list[float]) -> str:
    """Say what the layer does."""
    if not any(mean) and all(value == 1 for value in std):
        return "none: pixels in [0,1] go straight in"
    return f"(x - [{_shown(mean)}]) / [{_shown(std)}]"


def _shown(values: tuple[float, ...] | list[float]) -> str:
    return " ".join(f"{value:.4g}" for value in values)
