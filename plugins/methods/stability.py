"""Stability training (Li et al., NeurIPS 2019): the answer under noise should be the answer without."""

from __future__ import annotations

from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from smoothctl import Batch, Method, Recipe, hookimpl


class Stability(Method):
    """Cross-entropy on clean images, and between the answers to clean and to noisy ones."""

    name = "stability"
    summary = "cross-entropy on clean images plus agreement of noisy answers with clean ones (Li et al. 2019)"
    recipes = (
        *(
            Recipe(
                dataset="cifar10", sigma=sigma, arch="resnet110", epochs=150, batch_size=256, lr=0.1, weight_decay=1e-4,
                milestones=(50, 100), options={"lbd": lbd}, source="baseline of Jeong et al. 2023 (CAT-RS), code",
            )
            for sigma, lbd in ((0.25, 2.0), (0.5, 2.0), (1.0, 1.0))
        ),
        Recipe(
            dataset="mnist", arch="lenet", epochs=90, batch_size=256, lr=0.01, weight_decay=1e-4,
            milestones=(30, 60), options={"lbd": 2.0}, source="baseline of Jeong and Shin 2020, code",
        ),
        Recipe(
            dataset="digits", options={"lbd": 2.0},
            source="smoothctl's default for digits, after the MNIST setting of Jeong and Shin 2020",
        ),
    )  # fmt: skip

    class Options(Method.Options):
        lbd: float = Field(2.0, ge=0, description="weight of the agreement (lambda of the paper)")

    def loss(self, model: nn.Module, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """CE(f(x), y) + lbd * CE(f(x + noise), softmax f(x)); gradients flow through both answers."""
        clean, noisy = model(batch.x), model(batch.noisy())
        cross_entropy = F.cross_entropy(clean, batch.y)
        agreement = F.cross_entropy(noisy, clean.softmax(dim=1))
        return cross_entropy + self.options.lbd * agreement, {"cross_entropy": cross_entropy, "agreement": agreement}


@hookimpl
def register_methods() -> list[type[Method]]:
    return [Stability]
