"""Streams that are closed or full, signals, bugs, and processes that were started together: one line at most, no
traceback unless it is asked for, and nothing lost."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from smoothctl.base import launcher, peers
from smoothctl.base.errors import SmoothctlError, UsageError
from smoothctl.cli import process, report
from smoothctl.records.log import read_log
from tests.cli.conftest import Typed, finish, start
from tests.conftest import PluginMaker

IN_SHELL = f"{sys.executable} -m smoothctl"


def shell(line: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """What bash makes of a line."""
    return subprocess.run(["bash", "-c", line], cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A command with a bug; returns where tracebacks are kept."""
    monkeypatch.setattr(process.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(report, "command", _divide)
    return tmp_path


def _divide() -> None:
    print(1 // 0)


def test_a_bug_is_one_line_that_asks_for_a_report_and_names_the_kept_traceback(typed: Typed, faulty: Path) -> None:
    done = typed("report")
    assert done.code == 1
    assert len(done.err.splitlines()) == 1
    assert "please report it" in done.err
    (kept,) = faulty.iterdir()
    assert re.search(rf"smoothctl \d[^ ]* .*ZeroDivisionError.*{re.escape(str(kept))}", done.err)
    assert "Traceback (most recent call last)" in kept.read_text()
    assert "smoothctl report" in kept.read_text()


def test_the_traceback_is_shown_where_it_is_asked_for(typed: Typed, faulty: Path) -> None:
    done = typed("--traceback report")
    assert done.code == 1
    assert "Traceback (most recent call last)" in done.err
    assert "traceback above" in done.err
    assert not list(faulty.iterdir())


def test_the_traceback_is_shown_where_it_cannot_be_kept(
    typed: Typed, faulty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process.tempfile, "tempdir", str(faulty / "gone"))
    done = typed("report")
    assert done.code == 1
    assert "Traceback (most recent call last)" in done.err


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_streams_harm_nothing(tmp_path: Path, closed: str) -> None:
    done = shell(f"{IN_SHELL} --version {closed}", tmp_path)
    assert done.returncode == 0
    assert done.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_stdout_is_one_line(tmp_path: Path) -> None:
    done = shell(f"{IN_SHELL} --version > /dev/full", tmp_path)
    assert done.returncode == 1
    assert done.stderr == "smoothctl: No space left on device\n"


def test_a_reader_that_left_is_nothing_to_speak_of(tmp_path: Path) -> None:
    done = shell(f"(sleep 1; {IN_SHELL} --help) | true", tmp_path)
    assert done.stderr == ""


@pytest.mark.parametrize(
    "sent", [[signal.SIGHUP], [signal.SIGTERM], [signal.SIGINT] * 3, [signal.SIGTERM, signal.SIGINT]]
)
def test_signals_end_a_command_once(run_copy: Path, workplace: Path, sent: list[signal.Signals]) -> None:
    running = start(f"certify {run_copy} --n 200000", workplace)
    log = run_copy / "certify.tsv"
    until = time.monotonic() + 60
    while not log.exists() and time.monotonic() < until:
        time.sleep(0.05)
    for number in sent:
        os.kill(running.pid, number)
        time.sleep(0.03)
    done = finish(running)
    assert done.code == 130
    assert done.err.rstrip().endswith("interrupted; what is finished is on disk, and the same command goes on")
    assert "Traceback" not in done.err


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def begun(process: subprocess.Popen[str], log: Path) -> None:
    """Wait until a log has rows."""
    while process.poll() is None and not (log.exists() and len(log.read_text().splitlines()) > 2):
        time.sleep(0.02)


@pytest.mark.parametrize("where", [">&-", "2>&-", "| head -1 >/dev/null", ">/dev/full"])
def test_output_that_goes_nowhere_is_no_traceback(where: str, workplace: Path) -> None:
    done = shell(f"{IN_SHELL} plugins {where}", workplace)
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
    assert len(done.stderr.splitlines()) <= 1


def test_a_bug_is_one_line_and_its_traceback_is_kept(
    typed: Typed, make_plugin: PluginMaker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    make_plugin(
        "broken",
        "from smoothctl import hookimpl, ReportTable\n"
        "def rows(report): raise KeyError('a secret')\n"
        "@hookimpl\ndef register_tables(): return [ReportTable('broken', rows, 'a table')]\n",
    )
    (tmp_path / "log.tsv").write_text("idx\tlabel\tpredict\tradius\tcorrect\ttime\n0\t1\t1\t0.5\t1\t0:00:01\n")
    done = typed(f"report {tmp_path / 'log.tsv'} --show broken")
    assert done.code == 1
    (line,) = [line for line in done.err.splitlines() if "this is a bug" in line]
    (kept,) = tmp_path.glob("smoothctl-*.txt")
    assert str(kept) in line
    assert "KeyError: 'a secret'" in kept.read_text()
    assert "Traceback" not in done.err
    assert "Traceback" in typed(f"--traceback report {tmp_path / 'log.tsv'} --show broken").err
    assert "Traceback" in typed(f"report {tmp_path / 'log.tsv'} --show broken --traceback").err


def test_a_plugin_that_prints_does_not_spoil_the_document(typed: Typed, make_plugin: PluginMaker) -> None:
    make_plugin("chatty", "print('hello from a plugin')\n")
    done = typed("plugins --json")
    assert done.json()["plugins"]
    assert "hello from a plugin" in done.err


def test_a_log_that_vanishes_under_its_writer_is_written_again_whole(run_copy: Path) -> None:
    log = run_copy / "certify.tsv"
    process = start(f"certify {run_copy} --n 2000 --max 60", run_copy.parent)
    begun(process, log)
    log.unlink()
    done = finish(process)
    assert done.code == 0, done.err
    assert "vanished while it was being written" in done.err
    assert [row.idx for row in read_log(log).rows] == list(range(60))


def test_shards_of_another_number_are_not_mixed(typed: Typed, run_copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert typed(f"certify {run_copy} --n 100 --max 8 --shard 2/4").code == 0
    for name, value in {"ID": "2", "MIN": "2", "COUNT": "2", "STEP": "1"}.items():
        monkeypatch.setenv(f"SLURM_ARRAY_TASK_{name}", value)
    done = typed(f"certify {run_copy} --n 100 --max 8 --shard slurm")
    assert done.code == 2
    assert "shards of 4 of certify.tsv lie there already" in done.err
    assert "--shard I/4" in done.err
    assert typed(f"certify {run_copy} --n 100 --max 8 --shard 3/4").code == 0


@pytest.mark.parametrize("command", ["certify {run} --n 100 --max 2", "train --arch lenet --epochs 1 --out new"])
def test_a_launcher_that_set_only_half_is_one_line(
    typed: Typed, run_copy: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    done = typed(command.format(run=run_copy))
    assert done.code == 2
    assert "WORLD_SIZE is 2, but MASTER_ADDR and MASTER_PORT and RANK are not set" in done.err


def test_a_local_rank_that_is_no_number_is_one_line(
    typed: Typed, run_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_RANK", "first")
    done = typed(f"certify {run_copy} --n 100 --max 2 --device cuda")
    assert done.code == 2
    assert "Traceback" not in done.err
    with pytest.raises(UsageError, match="LOCAL_RANK is first, which is no place of a process"):
        launcher.local_rank()


@pytest.mark.parametrize("command", ["certify {run} --n 100 --max 2", "train --arch lenet --epochs 1 --out new"])
def test_a_port_in_use_is_one_line(typed: Typed, run_copy: Path, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        for name, value in {
            "WORLD_SIZE": "2",
            "RANK": "0",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
        }.items():
            monkeypatch.setenv(name, value)
        done = typed(command.format(run=run_copy))
    assert done.code == 2
    assert f"port {port} of 127.0.0.1 cannot be served" in done.err


def test_the_first_worker_does_everything_if_no_other_comes(run_copy: Path) -> None:
    alone = {"WORLD_SIZE": "2", "RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    done = finish(start(f"certify {run_copy} --n 100 --max 4", run_copy.parent, **alone))
    assert done.code == 0, done.err
    assert "worker 1 never came" in done.err
    assert len(read_log(run_copy / "certify.tsv").rows) == 4


@pytest.mark.parametrize(
    ("rank", "line"), [("0", "train --arch lenet --epochs 1 --out new"), ("1", "certify {run} --n 100 --max 4")]
)
def test_who_waits_says_so_and_ends_on_a_signal(run_copy: Path, rank: str, line: str) -> None:
    alone = {"WORLD_SIZE": "2", "RANK": rank, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    process = start(line.format(run=run_copy), run_copy.parent, **alone)
    assert process.stderr is not None
    for text in process.stderr:
        if "waiting for the process of rank" in text:
            break
    else:
        raise AssertionError("it did not say that it waits")
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=20) == 130


@pytest.mark.parametrize(
    ("rank", "line"), [("0", "train --arch lenet --epochs 1 --out new"), ("1", "certify {run} --n 100 --max 4")]
)
def test_waiting_ends_when_the_user_says(typed: Typed, run_copy: Path, rank: str, line: str) -> None:
    alone = {"WORLD_SIZE": "2", "RANK": rank, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    process = start(f"{line.format(run=run_copy)} --timeout 0.5", run_copy.parent, **alone)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 1, told
    assert " for the process of rank" in told
    assert "in vain" in told


@pytest.mark.parametrize("module", ["pydantic_core", "typer.core", "numpy", "torch._C"])
def test_an_early_interruption_leaves_no_traceback(run_copy: Path, module: str) -> None:
    """While Python still imports what the command needs, of which it tells."""
    process = start(f"certify {run_copy} --n 100000", run_copy.parent, PYTHONPROFILEIMPORTTIME="1")
    assert process.stderr is not None
    told = []
    for line in process.stderr:
        told.append(line)
        if line.rstrip().endswith(f"| {module}") or line.rstrip().endswith(f" {module}"):
            process.send_signal(signal.SIGINT)
            break
    told += process.stderr.readlines()
    assert process.wait(timeout=60) in (130, -signal.SIGINT), told[-5:]
    assert not [line for line in told if "Traceback" in line]


def test_waiting_ends_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SmoothctlError, match="waited 0 s for a miracle in vain"):
        peers.wait_until(lambda: None, "a miracle", timeout=0.3)
    environment = {"WORLD_SIZE": "2", "RANK": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}
    with pytest.raises(UsageError, match="WORLD_SIZE=2 has ranks 0 to 1"):
        peers.join_store(environment)


def test_a_file_system_without_locks_is_named(typed: Typed, run_copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno

    from filelock import FileLock

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(FileLock, "acquire", refuse)
    done = typed(f"certify {run_copy} --n 100 --max 2")
    assert done.code == 1
    assert "cannot be locked" in done.err
    assert "No locks available" in done.err


def test_a_hook_without_its_mark_is_named_with_its_file(typed: Typed, make_plugin: PluginMaker) -> None:
    make_plugin("unmarked", "def register_noises():\n    return []\n")
    done = typed("plugins")
    assert "register_noises in " in done.err
    assert "lacks @smoothctl.hookimpl" in done.err
