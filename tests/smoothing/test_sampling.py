"""Votes depend on (seed, image, stream, block) and on nothing else."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from smoothctl_plugins.backends import compile as compile_plugin
from torch import Tensor, nn

from smoothctl.base.errors import SmoothctlError
from smoothctl.base.streams import Stream
from smoothctl.hooks.backends import Classifier, Workload
from smoothctl.hooks.registry import registry
from smoothctl.smoothing.backends import plain
from smoothctl.smoothing.probe import BATCHES
from smoothctl.smoothing.sampling import BLOCK, Request, Rule, Sampler, Votes
from tests.networks import BatchDependent, Constant, NotANumber, OutsideBox, Threshold, grey_images


def sampler(model: nn.Module, batch_size: int, seed: int = 0, sigma: float = 0.5) -> Sampler[list[Votes]]:
    noise = registry().find("noise", "gaussian").value
    return Sampler(plain(model), noise, sigma, seed, torch.device("cpu"), batch_size)


def looks(*requests: tuple[Stream, int]) -> Rule[list[Votes]]:
    """A rule that asks for votes and returns all answers."""
    answers = []
    for stream, total in requests:
        answers.append((yield Request(stream, total)))
    return answers


def votes_by_index(run: Sampler[list[Votes]], images: dict[int, Tensor], *requests: tuple[Stream, int]) -> dict:
    return {
        item.index: [tuple(votes) for votes in item.outcome]
        for item in run.run(images.items(), lambda index: looks(*requests))
    }


IMAGES = dict(enumerate(grey_images(7, 0.6)))
REQUESTS = ((Stream.SELECT, 30), (Stream.ESTIMATE, 130), (Stream.ESTIMATE, 350))
REFERENCE = votes_by_index(sampler(Threshold(), 1000), IMAGES, *REQUESTS)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 700), st.permutations(list(IMAGES)), st.integers(1, 7))
def test_votes_do_not_depend_on_batch_order_or_subset(batch_size: int, order: list[int], count: int) -> None:
    chosen = {index: IMAGES[index] for index in order[:count]}
    got = votes_by_index(sampler(Threshold(), batch_size), chosen, *REQUESTS)
    assert got == {index: REFERENCE[index] for index in chosen}


def test_every_request_counts_exactly_its_copies() -> None:
    for answers in REFERENCE.values():
        assert [sum(votes) for votes in answers] == [30, 130, 350]


def test_a_later_look_continues_the_earlier_one() -> None:
    direct = votes_by_index(sampler(Threshold(), 64), IMAGES, (Stream.ESTIMATE, 350))
    assert {index: answers[0] for index, answers in direct.items()} == {
        index: answers[2] for index, answers in REFERENCE.items()
    }


def test_images_streams_and_seeds_have_noise_of_their_own() -> None:
    class Recorder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.seen: list[Tensor] = []

        def forward(self, x: Tensor) -> Tensor:
            self.seen.append(x.clone())
            return torch.zeros(len(x), 2)

    first, second = Recorder(), Recorder()
    requests = ((Stream.SELECT, 150), (Stream.ESTIMATE, 150))
    votes_by_index(sampler(first, 64, seed=0), {0: IMAGES[0], 1: IMAGES[0]}, *requests)
    votes_by_index(sampler(second, 64, seed=1), {0: IMAGES[0]}, *requests)
    samples = torch.cat(first.seen[BATCHES:] + second.seen[BATCHES:]).flatten(1)
    assert len(samples) == 900
    assert len(torch.unique(samples, dim=0)) == 900


def test_noise_has_the_scale_and_shape_of_a_gaussian() -> None:
    noise = registry().find("noise", "gaussian").value
    from smoothctl.base.draws import Draws

    drawn = noise.sample((BLOCK, 3, 32, 32), 0.25, Draws(0, 1, 2, 3)).double()
    assert float(drawn.std()) == pytest.approx(0.25, rel=0.01)
    assert float(drawn.mean()) == pytest.approx(0.0, abs=0.002)
    assert float((drawn / 0.25).pow(4).mean()) == pytest.approx(3.0, rel=0.03)


def test_noise_is_not_clipped() -> None:
    got = votes_by_index(sampler(OutsideBox(), 50), {0: torch.full((3, 8, 8), 0.5)}, (Stream.ESTIMATE, 200))
    assert got[0][0] == (0, 200)


def test_model_in_train_mode_votes_as_in_eval_mode_and_keeps_its_buffers() -> None:
    torch.manual_seed(0)
    model = BatchDependent().train()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    images = dict(enumerate(torch.rand(3, 3, 8, 8)))
    small = votes_by_index(sampler(model, 10), images, (Stream.ESTIMATE, 500))
    large = votes_by_index(sampler(model, 1000), images, (Stream.ESTIMATE, 500))
    for index in images:
        assert np.abs(np.subtract(small[index], large[index])).max() <= 1  # a float tie may fall the other way
    assert model.training
    assert model.layers[3].training
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())


def test_logits_that_are_not_finite_stop_with_the_image_and_the_count() -> None:
    with pytest.raises(SmoothctlError, match=r"non-finite logits for idx 4 \(100 of 100 samples\)"):
        list(sampler(NotANumber(), 100).run([(4, IMAGES[0])], lambda index: looks((Stream.SELECT, 100))))


class LittleMemory(Constant):
    """A device that cannot hold more than 64 images."""

    def forward(self, x: Tensor) -> Tensor:
        if len(x) > 64:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return super().forward(x)


def test_out_of_memory_halves_the_batch_and_loses_no_copy(capsys: pytest.CaptureFixture[str]) -> None:
    got = votes_by_index(sampler(LittleMemory(), 1000), dict(list(IMAGES.items())[:2]), (Stream.ESTIMATE, 1000))
    assert got == {0: [(0, 0, 1000)], 1: [(0, 0, 1000)]}
    assert capsys.readouterr().err.count("out of memory") == 4  # 500, 250, 125, 62


def test_a_compiled_network_halves_its_one_size_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", lambda network: network)
    run = sampler(LittleMemory(), 1000)
    work = Workload((1, 4, 4), torch.device("cpu"), 1000, "fp32")
    run.classifier = Classifier(compile_plugin.prepare(LittleMemory(), work), "compile", "fp32")
    assert votes_by_index(run, {0: IMAGES[0]}, (Stream.ESTIMATE, 1000)) == {0: [(0, 0, 1000)]}
    assert run.batch_size == 62


def test_memory_is_bounded_by_the_batch() -> None:
    sizes: list[int] = []
    run = sampler(Constant(), 128)
    run.on_batch = sizes.append
    list(run.run(IMAGES.items(), lambda index: looks((Stream.ESTIMATE, 1000))))
    assert max(sizes) == 128
    assert sum(sizes) == 7000
    assert sizes.count(128) >= len(sizes) - 1  # images are packed: only the last batch is not full
