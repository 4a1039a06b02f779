"""Training objectives, and the batch that they are given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel, ConfigDict

from smoothctl.base.errors import UsageError
from smoothctl.hooks.recipes import Recipe

if TYPE_CHECKING:
    from torch import Tensor, nn


@dataclass(frozen=True)
class Batch:
    """One optimiser step's images as a method sees them.

    x: clean images [B,C,H,W] in [0,1]; y: labels [B]; index: places in the dataset [B]; epoch:
    counted from 0, of ``epochs``; sigma: the scale of the noise; teacher: a frozen network from
    pixels to logits, or None, and teacher_sigma the scale that it is for, if that is known; apply_noise: how a noise
    that is not added meets the images. All random
    numbers come from the batch, so that a run can be repeated, and is the same whether one process has the
    batch or several share it.
    """

    x: Tensor
    y: Tensor
    index: Tensor
    epoch: int
    epochs: int
    sigma: float
    sample_noise: Callable[[tuple[int, ...]], Tensor]
    sample_uniform: Callable[[tuple[int, ...]], Tensor]
    teacher: Callable[[Tensor], Tensor] | None = None
    teacher_sigma: float | None = None
    apply_noise: Callable[[Tensor, Tensor, float], Tensor] | None = None

    def noise(self, samples: int = 1) -> Tensor:
        """Draw fresh noise [samples*B,C,H,W], to be added to ``x.repeat(samples, 1, 1, 1)``.

        Raises UsageError for a noise that is not added: only ``noisy`` serves it.
        """
        if self.apply_noise is not None:
            raise UsageError(
                "this method adds noise to images itself, and the noise of this run is not one that is added; choose "
                "another method"
            )
        return self._draw(samples)

    def uniform(self, samples: int = 1) -> Tensor:
        """Draw numbers between 0 and 1, one for each sample of each image: [samples*B]."""
        return self.sample_uniform((samples * self.x.shape[0],))

    def noisy(self, samples: int = 1) -> Tensor:
        """The images with fresh noise, never clipped: [samples*B,C,H,W], all images sample by sample."""
        x, drawn = self.x.repeat(samples, 1, 1, 1), self._draw(samples)
        return x + drawn if self.apply_noise is None else self.apply_noise(x, drawn, self.sigma)

    def _draw(self, samples: int) -> Tensor:
        return self.sample_noise((samples * self.x.shape[0], *self.x.shape[1:]))


class Method(ABC):
    """A training objective. Subclasses set ``name``, may narrow ``Options``, and write ``loss``.

    ``smoothctl transfer`` serves methods that need a teacher and those that merely take one.
    """

    name: ClassVar[str]
    summary: ClassVar[str] = ""
    needs_teacher: ClassVar[bool] = False
    takes_teacher: ClassVar[bool] = False
    recipes: ClassVar[Sequence[Recipe]] = ()

    class Options(BaseModel):
        """The method's own options, given as ``-o name=value``; descriptions are the help."""

        model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    def __init__(self, options: Any = None):
        self.options: Any = self.Options() if options is None else options

    @property
    def takes_any_sigma(self) -> bool:
        """Whether its teacher may be for another sigma than the student, so that nobody need be warned of it."""
        return False

    @abstractmethod
    def loss(self, model: nn.Module, batch: Batch) -> Tensor | tuple[Tensor, dict[str, Tensor]]:
        """The loss of one step, a mean over the batch's images, or (loss, parts to log)."""
