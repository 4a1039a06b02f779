"""Where and how a training run is computed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from smoothctl.smoothing.settings import TeacherSettings
from smoothctl.training.distributed import Group


@dataclass(frozen=True)
class Execution:
    """Where and how a run is computed; none of it is meant to change what is learnt.

    The teacher may have a device, a precision and a backend of its own.
    """

    device: torch.device
    workers: int = 0
    compile: bool = False
    group: Group = field(default_factory=Group)
    teacher_device: torch.device | None = None
    teacher: TeacherSettings = field(default_factory=TeacherSettings)

    def about(self) -> dict[str, Any]:
        """What a run records of it."""
        teacher = {"device": str(self.teacher_device or self.device), **self.teacher.model_dump()}
        return {
            "device": str(self.device), "compile": self.compile, "processes": self.group.world, "teacher": teacher,
        }  # fmt: skip
