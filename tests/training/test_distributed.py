"""Shares of a batch: every image counts once, and draws are those of one process."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from smoothctl import Draws, UsageError
from smoothctl.training.distributed import Group, join_group


@given(st.integers(1, 20), st.integers(1, 6))
def test_shares_cover_a_batch_and_none_is_empty(size: int, world: int) -> None:
    shares = [Group(rank, world).share(range(size)) for rank in range(world)]
    counted = [row for share in shares for row in share.rows[: share.counted]]
    assert sorted(counted) == list(range(size))
    assert all(share.rows and share.whole == size for share in shares)


@given(st.integers(1, 9), st.integers(1, 4), st.integers(1, 3))
def test_shares_draw_what_one_process_draws(size: int, world: int, samples: int) -> None:
    def draw(draws: Draws, rows: int) -> list[torch.Tensor]:
        return [
            draws.normal((samples * rows, 2, 2)),
            draws.uniform((rows,)),
            draws.integers(0, 100, (samples * rows, 1)),
        ]

    whole = draw(Draws(0, 1), size)
    for rank in range(world):
        share = Group(rank, world).share(range(size))
        rows = torch.tensor(share.rows)
        for one, other in zip(whole, draw(share.draws(Draws(0, 1)), len(rows)), strict=True):
            assert torch.equal(one.unflatten(0, (-1, size))[:, rows].flatten(0, 1), other)


@pytest.mark.parametrize("size", ["2", "two"])
def test_a_cluster_that_sets_only_the_number_of_processes_is_told_of_torchrun(
    size: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", size)
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(UsageError, match=f"WORLD_SIZE is {size}, .*start them by torchrun"):
        join_group(torch.device("cpu"))
