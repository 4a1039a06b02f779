"""A training method: cross-entropy with smoothed labels on several noise samples of each image."""

from pydantic import Field
from torch.nn import functional as F

from smoothctl import Method, Recipe, hookimpl


class LabelSmoothing(Method):
    name = "label-smoothing"
    summary = "cross-entropy with smoothed labels on noise samples"
    recipes = (Recipe(dataset="stripes", arch="mlp", epochs=5, batch_size=32, lr=0.1, source="this package"),)

    class Options(Method.Options):
        smoothing: float = Field(0.1, ge=0, lt=1, description="weight that is spread over all classes")
        samples: int = Field(2, ge=1, description="noise samples of each image in a step")

    def loss(self, model, batch):
        logits = model(batch.noisy(self.options.samples))
        labels = batch.y.repeat(self.options.samples)
        return F.cross_entropy(logits, labels, label_smoothing=self.options.smoothing)


@hookimpl
def register_methods():
    return [LabelSmoothing]
