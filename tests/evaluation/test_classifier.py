"""``--precision auto`` of certify and predict: measured once, on record, and what predict takes again."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from smoothctl.evaluation import classifier
from tests.cli.conftest import Typed, typed

__all__ = ["typed"]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def settings_of(log: Path) -> dict:
    return json.loads(log.with_suffix(".json").read_text())["settings"]


def test_it_is_measured_once_and_taken_again(run_copy: Path, typed: Typed, cache: Path) -> None:
    done = typed(f"certify {run_copy} --n 100 --max 2 --precision auto")
    assert done.code == 0
    assert "precision auto: " in done.err
    assert "(a small batch takes fp32 " in done.err
    assert settings_of(run_copy / "certify.tsv")["precision"] in ("fp32", "bf16")
    (kept,) = cache.rglob("*.json")
    before = kept.stat().st_mtime_ns
    assert typed(f"certify {run_copy} --n 50 --max 2 --precision auto --out {run_copy}/other.tsv").code == 0
    assert kept.stat().st_mtime_ns == before


def test_a_faster_precision_is_on_record_resumed_and_what_predict_takes(
    run_copy: Path, typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(classifier, "remembered", lambda *_: {"fp32": 2.0, "bf16": 1.0})
    assert "precision auto: bf16 (" in typed(f"certify {run_copy} --n 100 --max 2 --precision auto").err
    assert settings_of(run_copy / "certify.tsv")["precision"] == "bf16"
    Image.fromarray(np.zeros((8, 8), np.uint8)).save(tmp_path / "image.png")
    monkeypatch.setattr(classifier, "remembered", lambda *_: {"fp32": 1.0, "bf16": 2.0})
    for line in (f"certify {run_copy} --n 100 --max 2", f"predict {run_copy} {tmp_path}/image.png"):
        done = typed(f"{line} --precision auto")
        assert done.code == 0
        assert f"precision auto: bf16, as {run_copy}/certify.tsv has it" in done.err
        assert "was certified with" not in done.err
    done = typed(f"predict {run_copy} {tmp_path}/image.png")
    assert "was certified with precision bf16, this predicts with fp32; auto takes the same" in done.err


def test_shards_with_auto_are_merged_by_the_same_words(run_copy: Path, typed: Typed) -> None:
    for shard in (1, 2):
        assert typed(f"certify {run_copy} --n 100 --max 4 --precision auto --shard {shard}/2").code == 0
    assert typed(f"certify {run_copy} --n 100 --max 4 --precision auto --merge").code == 0


def test_a_long_job_is_told_what_a_lower_precision_would_save(
    run_copy: Path, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(classifier, "_is_fast_below", lambda device: True)
    monkeypatch.setattr(classifier, "remembered", lambda *_: {"fp32": 2.0, "bf16": 0.8})
    monkeypatch.setattr(classifier, "LONG", 200)
    done = typed(f"certify {run_copy} --n 100 --max 2")
    assert "precision bf16 would take 0.40 of the time" in done.err
    assert settings_of(run_copy / "certify.tsv")["precision"] == "fp32"
