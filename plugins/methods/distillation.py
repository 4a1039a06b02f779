"""Transfer by other means than CRT: distillation with temperature, and matching smoothed answers."""

from __future__ import annotations

from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from smoothctl import Batch, Method, Recipe, hookimpl, log_averaged_softmax

# Both are compared with CRT, so they take its schedule.
SCHEDULE = Recipe(
    dataset="cifar10", epochs=200, batch_size=128, lr=0.1, weight_decay=1e-4, milestones=(100, 150),
    source="schedule of CRT (CRT paper, table 16); options are this project's",
)  # fmt: skip


class Distillation(Method):
    """The student learns the teacher's softened probabilities under noise (Hinton, Vinyals and Dean 2015)."""

    name = "kd"
    summary = "knowledge distillation with temperature, under noise (Hinton et al. 2015)"
    needs_teacher = True
    recipes = (
        SCHEDULE,
        Recipe(
            dataset="digits", options={"temperature": 2.0, "weight": 0.9},
            source="smoothctl's default for digits, at a temperature that suits its small steps",
        ),
    )  # fmt: skip

    class Options(Method.Options):
        temperature: float = Field(4.0, gt=0, description="by which both networks' logits are divided")
        weight: float = Field(0.9, ge=0, le=1, description="share of distillation; the rest is cross-entropy")

    def loss(self, model: nn.Module, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """weight * T^2 * KL(teacher || student) at temperature T + (1 - weight) * cross-entropy (section 2)."""
        assert batch.teacher is not None
        temperature, noisy = self.options.temperature, batch.noisy()
        taught, logits = batch.teacher(noisy), model(noisy)
        softened = (logits / temperature).log_softmax(dim=1)
        target = (taught / temperature).log_softmax(dim=1)
        distilled = temperature**2 * F.kl_div(softened, target, reduction="batchmean", log_target=True)
        cross_entropy = F.cross_entropy(logits, batch.y)
        loss = self.options.weight * distilled + (1 - self.options.weight) * cross_entropy
        return loss, {"distillation": distilled, "cross_entropy": cross_entropy}


class SmoothedMatching(Method):
    """The student's smoothed answer is drawn towards the teacher's: this project's own variant of CRT."""

    name = "crt-smoothed"
    summary = "match the teacher's mean answer over m noise samples (this project's variant of CRT)"
    needs_teacher = True
    recipes = (SCHEDULE,)

    class Options(Method.Options):
        m: int = Field(2, ge=1, description="noise samples of each image, the same for both networks")

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """KL(teacher's averaged softmax || student's averaged softmax), mean over images."""
        assert batch.teacher is not None
        samples, noisy = self.options.m, batch.noisy(self.options.m)
        taught, own = log_averaged_softmax(batch.teacher(noisy), samples), log_averaged_softmax(model(noisy), samples)
        return F.kl_div(own, taught, reduction="batchmean", log_target=True)


@hookimpl
def register_methods() -> list[type[Method]]:
    return [Distillation, SmoothedMatching]
