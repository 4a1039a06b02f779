"""Whether a network is a function of its own row: what every guarantee of randomized smoothing rests on.

A network whose answer for an image depends on the rest of its batch, or on chance, has no smoothed classifier. It
is found before the first image by evaluating a few rows alone, together, in another order, twice, and again.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from smoothctl.base.devices import evaluating
from smoothctl.base.errors import UsageError
from smoothctl.smoothing.outputs import input_dtype, require_logits

ROWS = 8
ALONE = 3
BATCHES = 4 + ALONE
"""How many batches a probe evaluates."""
TOLERANCE = {"fp32": 1e-3, "tf32": 1e-2, "bf16": 0.1, "fp16": 0.03}
"""By precision: differences of logits, relative to the largest, that rounding explains."""

Logits = Callable[[Tensor], Tensor]


def require_own_rows(logits: Logits, rows: Tensor, precision: str, model: nn.Module | None = None) -> None:
    """Raise UsageError if logits of rows [ROWS,C,H,W] depend on other rows, on their place, or on chance.

    ``model``, if at hand, tells the cause. Logits that are not finite are left to the sampler, which names the image.
    """
    together = require_logits(logits(rows), len(rows))
    largest = float(together.abs().nan_to_num(posinf=0.0).max())
    allowed = TOLERANCE[precision] * max(largest, 1e-6)

    def differs(first: Tensor, second: Tensor) -> bool:
        both = torch.isfinite(first) & torch.isfinite(second)
        return bool(((first - second).abs()[both] > allowed).any())

    if differs(together, require_logits(logits(rows), len(rows))):
        raise _refusal("answers the same batch differently each time", model, rows, _RANDOM)
    for place in range(ALONE):
        alone = require_logits(logits(rows[place : place + 1]), 1)
        if differs(together[place : place + 1], alone):
            raise _refusal("answers an image alone differently than among others", model, rows, _COUPLED)
    if differs(together.flip(0), require_logits(logits(rows.flip(0)), len(rows))):
        raise _refusal("answers an image differently in another place of the batch", model, rows, _COUPLED)
    twice = require_logits(logits(rows[[0, 0, 1]]), 3)
    if differs(together[[0, 0, 1]], twice):
        raise _refusal("answers an image differently when the batch holds it twice", model, rows, _COUPLED)


def probe_rows(x: Tensor) -> Tensor:
    """Rows [ROWS,C,H,W] that a network should answer in several ways, made from an image [C,H,W] in [0,1]."""
    generator = torch.Generator().manual_seed(0)
    image = x.detach().float().cpu()
    noise = torch.randn(4, *image.shape, generator=generator)
    noisy = [image + scale * noise[place] for place, scale in enumerate((0.25, 1.0, 1.0, 2.0))]
    plain = [image, 1.0 - image, torch.zeros_like(image), torch.rand(image.shape, generator=generator) * 2 - 0.5]
    return torch.stack([noisy[1], plain[1], noisy[3], plain[0], noisy[0], plain[2], noisy[2], plain[3]]).to(x.device)


_RANDOM = "dropout or other chance is active in its forward pass"
_COUPLED = (
    "it may normalize by statistics of the batch, take a majority over it, or use its size as a number; each row of "
    "its output must depend on that row of its input alone"
)


def _refusal(what: str, model: nn.Module | None, rows: Tensor, guess: str) -> UsageError:
    cause = _cause(model, rows) if model is not None else ""
    return UsageError(f"the network {what}, so that no smoothed classifier is defined: {cause or guess}")


def _cause(model: nn.Module, rows: Tensor) -> str:
    """What the modules themselves tell; empty if nothing."""
    for name, module in model.named_modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.running_mean is None:
            return (
                f"{name or 'it'} is a batch norm without running statistics (track_running_stats=False), which "
                "normalizes by the batch at hand; train it with running statistics, or use group norm"
            )
    with evaluating(model):
        model(rows.to(input_dtype(model)))
        switched = [name or "the network itself" for name, module in model.named_modules() if module.training]
    if switched:
        return f"{switched[0]} switches to train mode in its forward pass; it must stay in eval mode"
    return ""
