"""SmoothAdv (Salman et al., NeurIPS 2019): adversarial training of the soft smoothed classifier."""

from __future__ import annotations

from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from smoothctl import AttackOptions, Batch, Method, Recipe, attack_batch, hookimpl


class SmoothAdv(Method):
    """Images are moved to where the mean of probabilities over noise is worst, then learnt under that noise."""

    name = "smoothadv"
    summary = "adversarial training of the soft smoothed classifier (Salman et al. 2019)"
    # Published code cuts a batch of 256 into m chunks and steps after each: 256/m images a step.
    recipes = (
        Recipe(
            dataset="cifar10", sigma=0.25, name="crt2022", arch="resnet110", epochs=150, batch_size=32, lr=0.1,
            weight_decay=1e-4, milestones=(50, 100), options={"m": 8, "steps": 10, "epsilon": 1.0, "warmup_epochs": 10},
            source="CRT paper (NeurIPS 2022), tables 16 and 17; a batch of 256 in 8 chunks",
        ),
        Recipe(
            dataset="cifar10", sigma=0.5, name="jeong2023", arch="resnet110", epochs=150, batch_size=32, lr=0.1,
            weight_decay=1e-4, milestones=(50, 100), options={"m": 8, "steps": 10, "epsilon": 1.0, "warmup_epochs": 10},
            source="baseline of Jeong et al. 2023 (CAT-RS), code; a batch of 256 in 8 chunks",
        ),
        Recipe(
            dataset="cifar10", sigma=1.0, name="jeong2023", arch="resnet110", epochs=150, batch_size=128, lr=0.1,
            weight_decay=1e-4, milestones=(50, 100), options={"m": 2, "steps": 10, "epsilon": 2.0, "warmup_epochs": 10},
            source="baseline of Jeong et al. 2023 (CAT-RS), code; a batch of 256 in 2 chunks",
        ),
        *(
            Recipe(
                dataset="cifar10", sigma=sigma, name="jeong2020", arch="resnet110", epochs=150, batch_size=256 // m,
                lr=0.1, weight_decay=1e-4, milestones=(50, 100),
                options={"m": m, "steps": 10, "epsilon": epsilon, "warmup_epochs": 10},
                source=f"baseline of Jeong and Shin 2020, code; a batch of 256 in {m} chunks",
            )
            for sigma, m, epsilon in ((0.25, 4, 1.0), (0.5, 2, 2.0), (1.0, 2, 2.0))
        ),
        Recipe(
            dataset="cifar10", sigma=0.12, name="salman2019", arch="resnet110", epochs=150, batch_size=64, lr=0.1,
            weight_decay=1e-4, milestones=(50, 100),
            options={"m": 4, "steps": 10, "epsilon": 0.25, "warmup_epochs": 10},
            source="from the grid of Salman et al. 2019, of which smoothctl chose m and epsilon for this sigma",
        ),
        Recipe(
            dataset="mnist", arch="lenet", epochs=90, batch_size=64, lr=0.01, weight_decay=1e-4,
            milestones=(30, 60), options={"m": 4, "steps": 10, "epsilon": 1.0, "warmup_epochs": 10},
            source="baseline of Jeong and Shin 2020, code; a batch of 256 in 4 chunks, epsilon 255/256",
        ),
        Recipe(
            dataset="imagenet", arch="resnet50", epochs=90, batch_size=400, lr=0.1, weight_decay=1e-4,
            milestones=(30, 60), options={"m": 1, "steps": 1, "epsilon": 1.0, "warmup_epochs": 0},
            source="CRT paper (NeurIPS 2022), tables 16 and 17",
        ),
        Recipe(
            dataset="digits", epochs=30, options={"m": 2, "steps": 2, "epsilon": 0.5, "warmup_epochs": 10},
            source="smoothctl's default for digits, after Salman et al. 2019",
        ),
    )  # fmt: skip

    class Options(AttackOptions):
        m: int = Field(
            2,
            ge=1,
            description="noise samples of each image, the same for the attack and for the loss; each step learns from "
            "all of them (--train-multi-noise of the authors' code, without which it uses the first)",
        )

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Mean cross-entropy over the m noise samples of each adversarial image (equation 8)."""
        noise = batch.noise(self.options.m)
        adversarial = attack_batch(model, batch, noise, self.options)
        logits = model(adversarial.repeat(self.options.m, 1, 1, 1) + noise)
        return F.cross_entropy(logits, batch.y.repeat(self.options.m))


@hookimpl
def register_methods() -> list[type[Method]]:
    return [SmoothAdv]
