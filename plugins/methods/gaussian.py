"""Gaussian augmentation: cross-entropy on noisy images (Cohen et al. 2019, section 3.3)."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

from smoothctl import Batch, Method, Recipe, hookimpl


class Gaussian(Method):
    """The base classifier is trained on the noise under which it will vote."""

    name = "gaussian"
    summary = "cross-entropy on noisy images (Cohen et al. 2019)"
    recipes = (
        Recipe(
            dataset="cifar10", name="crt2022", arch="resnet110", epochs=200, batch_size=128, lr=0.1, weight_decay=1e-4,
            milestones=(100, 150), source="CRT paper (NeurIPS 2022), table 16, row Gaussian Augmentation",
        ),
        Recipe(
            dataset="cifar10", name="cohen2019", arch="resnet110", epochs=90, batch_size=400, lr=0.1, weight_decay=1e-4,
            milestones=(30, 60), source="Cohen et al. 2019, code; sigma 0.12, 0.25, 0.5, 1",
        ),
        Recipe(
            dataset="cifar10", name="jeong2020", arch="resnet110", epochs=150, batch_size=256, lr=0.1,
            weight_decay=1e-4, milestones=(50, 100), source="baseline of Jeong and Shin 2020",
        ),
        Recipe(
            dataset="mnist", sigma=0.5, name="jeong2020", arch="lenet", epochs=90, batch_size=256, lr=0.01,
            weight_decay=1e-4, milestones=(30, 60), source="Jeong and Shin 2020, MNIST setting",
        ),
        Recipe(
            dataset="imagenet", name="cohen2019", arch="resnet50", epochs=90, batch_size=400, lr=0.1, weight_decay=1e-4,
            milestones=(30, 60), source="Cohen et al. 2019, ImageNet setting",
        ),
        Recipe(
            name="finetune", epochs=30, lr=0.01, schedule="cosine", warmup_epochs=1,
            source="smoothctl's default for weights that were trained without noise (--init); Salman et al. 2019 "
            "fine-tune for 30 epochs at 0.001",
        ),
    )  # fmt: skip

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Mean cross-entropy over one noise sample of each image, drawn afresh at each step."""
        return F.cross_entropy(model(batch.noisy()), batch.y)


@hookimpl
def register_methods() -> list[type[Method]]:
    return [Gaussian]
