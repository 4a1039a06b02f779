"""What models return, and what they take."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn

from smoothctl import UsageError, certify
from smoothctl.smoothing.outputs import describe_output, find_logits
from tests.networks import Threshold, grey_images


@dataclass
class Output:
    logits: Tensor
    hidden: Tensor


class Returning(nn.Module):
    """A network that returns its logits in some structure."""

    def __init__(self, kind: str):
        super().__init__()
        self.kind = kind

    def forward(self, x: Tensor) -> object:
        z = Threshold()(x)
        shapes = {
            "tuple": (z, None), "list": [z], "dict": {"logits": z, "features": x}, "only": {"out": z},
            "dataclass": Output(z, x), "several": (z, z), "text": "no", "one": z[:, 1:], "flat": z[:, 1],
        }  # fmt: skip
        return shapes[self.kind]


@pytest.mark.parametrize("kind", ["tuple", "list", "dict", "only", "dataclass"])
def test_logits_are_found_where_that_is_unambiguous(kind: str) -> None:
    expected = certify(Threshold(), grey_images(1, 0.8), sigma=0.5, n=200)[0]
    (found,) = certify(Returning(kind), grey_images(1, 0.8), sigma=0.5, n=200)
    assert tuple(found.votes) == tuple(expected.votes)
    assert "taken for the logits" in describe_output(Returning(kind)(grey_images(1, 0.8)))


@pytest.mark.parametrize(
    ("kind", "named"),
    [
        ("several", "tuple with 2 tensors and no 'logits'"),
        ("text", "str with no tensor"),
        ("one", "one logit.*class TwoLogits"),
        ("flat", r"gave \(8,\) for 8 images"),
    ],
)
def test_other_outputs_are_refused_in_one_line(kind: str, named: str) -> None:
    with pytest.raises(UsageError, match=named):
        certify(Returning(kind), grey_images(1, 0.8), sigma=0.5, n=200)


def test_a_tensor_is_taken_as_it_is() -> None:
    z = torch.zeros(2, 3)
    assert find_logits(z) is z
    assert describe_output(z) == ""


def test_float64_modules_and_tensors_as_settings_work() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(192, 2)).double()
    (certificate,) = certify(network, grey_images(1, 0.8).double(), sigma=torch.tensor(0.5), n=200)  # type: ignore[arg-type]
    assert certificate.votes.sum() == 200
