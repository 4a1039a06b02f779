"""Several processes on one log: shares by hand, torchrun, and a worker that dies."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from smoothctl.base.errors import UsageError
from smoothctl.records.shards import Shard, read_shard
from tests.cli.conftest import Typed, finish, start
from tests.cli.test_certify import determined

RULES = ["--n 300", "--radii 0.1,0.3 --n 2000", "--budget draft --n 2000"]


@pytest.mark.parametrize(("count", "length"), [(3, 10), (3, 2), (1, 5)])
def test_shares_hold_every_image_exactly_once(count: int, length: int) -> None:
    held = [index for place in range(1, count + 1) for index in Shard(place, count).of(range(length))]
    assert sorted(held) == list(range(length))


def test_shares_are_read_from_text_and_from_slurm() -> None:
    assert read_shard("2/3") == Shard(2, 3)
    slurm = {"SLURM_ARRAY_TASK_ID": "11", "SLURM_ARRAY_TASK_MIN": "10", "SLURM_ARRAY_TASK_COUNT": "4"}
    assert read_shard("slurm", slurm) == Shard(2, 4)
    for wrong in ("0/3", "4/3", "1", "a/b", "slurm"):
        with pytest.raises(UsageError):
            read_shard(wrong, {})


@pytest.mark.parametrize("rule", RULES)
def test_shares_merge_into_what_one_process_writes(typed: Typed, run_copy: Path, workplace: Path, rule: str) -> None:
    line = f"certify {run_copy} --every 40 {rule}"
    typed(f"{line} --out whole.tsv")
    for place in (1, 2, 3):
        assert typed(f"{line} --out joined.tsv --shard {place}/3").code == 0
    assert typed(f"{line} --out joined.tsv --merge").code == 0
    assert determined(workplace / "joined.tsv") == determined(workplace / "whole.tsv")
    again = typed(f"{line} --out joined.tsv")
    assert "is finished" in again.err
    assert again.code == 0


def test_an_empty_share_is_a_header_and_no_failure(typed: Typed, run_copy: Path, workplace: Path) -> None:
    done = typed(f"certify {run_copy} --max 2 --n 100 --out a.tsv --shard 3/3")
    assert done.code == 0
    assert (workplace / "a.share-3-of-3.tsv").read_text().count("\n") == 1


def test_a_missing_share_is_named_and_nothing_is_merged(typed: Typed, run_copy: Path, workplace: Path) -> None:
    line = f"certify {run_copy} --max 4 --n 100 --out a.tsv"
    typed(f"{line} --shard 1/2")
    refused = typed(f"{line} --merge")
    assert refused.code == 2
    assert "hold 2 of 4 images" in refused.err
    assert not (workplace / "a.tsv").exists()
    typed(f"{line} --shard 2/2")
    other = typed(f"certify {run_copy} --max 4 --n 999 --out a.tsv --merge")
    assert other.code == 2
    assert "n 100 in file, 999 requested" in other.err
    assert typed(f"{line} --merge").code == 0
    assert len(determined(workplace / "a.tsv")) == 4


def test_shares_of_other_settings_do_not_merge(typed: Typed, run_copy: Path, workplace: Path) -> None:
    typed(f"certify {run_copy} --max 4 --n 100 --out a.tsv --shard 1/2")
    typed(f"certify {run_copy} --max 4 --n 200 --out a.tsv --shard 2/2")
    refused = typed(f"certify {run_copy} --out a.tsv --merge")
    assert refused.code == 2
    assert "a.share-2-of-2.tsv was made with other settings: n 200 in file, 100 requested" in refused.err


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda share: share.write_text(""), "no header"),
        (lambda share: share.write_text(share.read_text().replace("\n1\t", "\nx\t")), "not a row of this log"),
        (lambda share: share.with_suffix(".json").unlink(), "it is not known how it was made"),
    ],
)
def test_a_damaged_share_is_named_and_nothing_is_merged(
    typed: Typed, run_copy: Path, workplace: Path, damage: Callable[[Path], object], message: str
) -> None:
    line = f"certify {run_copy} --max 4 --n 100 --out a.tsv"
    for share in ("1/2", "2/2"):
        typed(f"{line} --shard {share}")
    damage(workplace / "a.share-2-of-2.tsv")
    refused = typed(f"{line} --merge")
    assert refused.code in (1, 2)
    assert "a.share-2-of-2.tsv" in refused.err
    assert message in refused.err
    assert "Traceback" not in refused.err
    assert not (workplace / "a.tsv").exists()


def test_merging_does_not_go_with_a_share_and_its_parts_are_not_reported_again(
    typed: Typed, run_copy: Path, workplace: Path
) -> None:
    line = f"certify {run_copy} --max 4 --n 100 --out logs/a.tsv"
    for share in ("1/2", "2/2"):
        typed(f"{line} --shard {share}")
    assert typed(f"{line} --merge --shard 1/2").code == 2
    assert len(typed("report logs --json").json()["certify"]) == 2
    assert typed(f"{line} --merge").code == 0
    assert [log["images"] for log in typed("report logs --json").json()["certify"]] == [4]


def test_a_stepped_slurm_array_has_shares_without_gaps(capsys: pytest.CaptureFixture[str]) -> None:
    environment = {"SLURM_ARRAY_TASK_MIN": "10", "SLURM_ARRAY_TASK_STEP": "5", "SLURM_ARRAY_TASK_COUNT": "3"}
    shares = [read_shard("slurm", {**environment, "SLURM_ARRAY_TASK_ID": str(task)}) for task in (10, 15, 20)]
    assert shares == [Shard(1, 3), Shard(2, 3), Shard(3, 3)]
    assert read_shard("slurm", {"SLURM_ARRAY_TASK_ID": "3", "SLURM_ARRAY_TASK_MIN": "3", "SLURM_ARRAY_TASK_COUNT": "1"})
    assert "does all images" in capsys.readouterr().err


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize("rule", RULES[:2])
def test_torchrun_merges_into_what_one_process_writes(typed: Typed, run_copy: Path, workplace: Path, rule: str) -> None:
    line = f"certify {run_copy} --every 20 --backend eager {rule}"
    typed(f"{line} --out whole.tsv")
    launch = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", str(free_port())]
    done = subprocess.run(
        [sys.executable, *launch, "-m", "smoothctl", "--", *line.split(), "--out", "shared.tsv"],
        cwd=workplace, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert determined(workplace / "shared.tsv") == determined(workplace / "whole.tsv")
    settings = json.loads((workplace / "shared.json").read_text())["settings"]
    assert settings["arithmetic"].startswith("exact, grid")
    assert not list(workplace.glob("*worker*"))
    assert done.stdout.count("log: shared.tsv") == 1


def test_when_a_worker_dies_the_others_do_its_images(typed: Typed, run_copy: Path, workplace: Path) -> None:
    line = f"certify {run_copy} --every 15 --n 4000 --backend eager --out a.tsv"
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2"}
    first = start(line, workplace, RANK="0", **shared)
    second = start(line, workplace, RANK="1", **shared)
    part = workplace / "a.tsv.worker1"
    while not part.exists() or not part.read_text():
        assert first.poll() is None
        time.sleep(0.05)
    second.send_signal(signal.SIGKILL)
    second.communicate()
    done = finish(first)
    assert done.code == 0
    assert "worker 1 died" in done.err
    assert "that workers left unfinished" in done.err
    typed(line.replace("a.tsv", "whole.tsv"))
    assert determined(workplace / "a.tsv") == determined(workplace / "whole.tsv")


def test_workers_stop_when_the_first_refuses(run_copy: Path, workplace: Path) -> None:
    shutil.copy(run_copy / "epochs.jsonl", workplace / "a.tsv")  # no log of ours
    line = f"certify {run_copy} --n 100 --max 4 --out a.tsv"
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2"}
    workers = [start(line, workplace, RANK=str(rank), **shared) for rank in (0, 1)]
    codes = [finish(worker).code for worker in workers]
    assert codes[0] == 2
    assert codes[1] != 0
