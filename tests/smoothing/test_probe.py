"""Networks that are no function of their own row are refused by name; others are not."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from smoothctl import UsageError, certify, predict
from smoothctl.smoothing.backends import make_ready
from smoothctl.smoothing.probe import probe_rows, require_own_rows
from tests.networks import BatchDependent, Constant, grey_images


class Votes(nn.Module):
    """Two classes by the sign of a random projection: a coin toss for a noisy image."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(192, generator=torch.Generator().manual_seed(0)))

    def own(self, x: Tensor) -> Tensor:
        return (x - 0.5).flatten(1) @ self.weight


class Majority(Votes):
    """What most rows of the batch answer, for all of them."""

    def forward(self, x: Tensor) -> Tensor:
        z = (self.own(x) > 0).float().mean().round().expand(len(x))
        return torch.stack([1 - z, z], dim=1)


class SizeAsNumber(Votes):
    """Logits divided by the size of the batch."""

    def forward(self, x: Tensor) -> Tensor:
        z = self.own(x) / len(x)
        return torch.stack([-z, z], dim=1)


class Alive(Votes):
    """Dropout that stays active."""

    def forward(self, x: Tensor) -> Tensor:
        z = self.own(nn.functional.dropout(x, 0.5, training=True))
        return torch.stack([-z, z], dim=1)


class Neighbour(Votes):
    """Each row answers for the one before it."""

    def forward(self, x: Tensor) -> Tensor:
        z = self.own(x.roll(1, 0))
        return torch.stack([-z, z], dim=1)


class Switching(BatchDependent):
    """Switches itself to train mode."""

    def forward(self, x: Tensor) -> Tensor:
        self.train()
        return super().forward(x)


def without_statistics() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4, track_running_stats=False), nn.Flatten(), nn.Linear(4 * 6 * 6, 2)
    )


REFUSED = [
    (Majority, "majority"),
    (SizeAsNumber, "size as a number"),
    (Alive, "dropout"),
    (Neighbour, "depend on that row"),
    (Switching, "layers.*train mode|itself switches to train mode"),
    (without_statistics, "1 is a batch norm without running statistics"),
]


@pytest.mark.parametrize(("make", "named"), REFUSED, ids=lambda item: getattr(item, "__name__", ""))
def test_networks_that_depend_on_more_than_their_row_are_refused_by_name(make: type[nn.Module], named: str) -> None:
    torch.manual_seed(0)
    network = make()
    for decide in (certify, predict):
        with pytest.raises(UsageError, match=named) as refused:
            decide(network, grey_images(1, 0.8), sigma=0.5, n=100)
        assert refused.value.exit_code == 2
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("backend", "precision"), [("eager", "fp32"), ("eager", "bf16"), ("onnxruntime", "fp32")])
def test_every_backend_is_probed(backend: str, precision: str) -> None:
    if backend == "onnxruntime":
        pytest.importorskip("onnxruntime")
    torch.manual_seed(0)
    rows = probe_rows(grey_images(1, 0.8)[0])
    good = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(4 * 6 * 6, 2)).eval()
    cpu = torch.device("cpu")
    ready = make_ready(good, (3, 8, 8), cpu, 8, precision, backend)  # type: ignore[arg-type]
    require_own_rows(ready.logits, rows, ready.precision)
    if backend == "eager":
        bad = make_ready(SizeAsNumber(), (3, 8, 8), cpu, 8, precision, "eager")  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="alone"):
            require_own_rows(bad.logits, rows, bad.precision)


@pytest.mark.parametrize("network", [Constant(), BatchDependent(), Votes()], ids=["constant", "batch norm", "votes"])
def test_functions_of_their_row_pass(network: nn.Module) -> None:
    if isinstance(network, Votes):
        network.forward = lambda x: torch.stack([-network.own(x), network.own(x)], dim=1)  # type: ignore[method-assign]
    (certificate,) = certify(network, grey_images(1, 0.8), sigma=0.5, n=100)
    assert certificate.votes.sum() == 100
