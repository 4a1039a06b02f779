"""Where and how a training run is computed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from smoothctl.training.distributed import Group
from smoothctl.training.settings import TeacherSettings


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

    @property
    def where(self) -> str:
        """``cpu``, or how many processes there are on what."""
        world = self.group.world
        return str(self.device) if world == 1 else f"{world} processes, each on {self.device.type}"

    def about(self) -> dict[str, Any]:
        """What a run records of it."""
        teacher = {
            "device": str(self.teacher_device or self.device),
            "precision": self.teacher.teacher_precision,
            "backend": self.teacher.teacher_backend,
        }
        return {
            "device": str(self.device), "compile": self.compile, "processes": self.group.world, "teacher": teacher,
        }  # fmt: skip
