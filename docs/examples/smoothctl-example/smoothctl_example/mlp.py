from torch import nn

from smoothctl import Architecture, hookimpl


def build(spec):
    return nn.Sequential(nn.Flatten(), nn.LazyLinear(64), nn.ReLU(), nn.Linear(64, spec.num_classes))


@hookimpl
def register_architectures():
    return [Architecture("mlp", build, summary="one hidden layer of 64 units")]
