"""Logs, run directories and settings."""

from __future__ import annotations

import contextlib
import gzip
import io
import shutil
from pathlib import Path

from tests.fuzz import damage, made
from tests.fuzz.hunting import Reader


def read_log(path: Path) -> None:
    from smoothctl.reporting.assemble import assemble
    from smoothctl.reporting.reader import read_frame

    report = assemble([read_frame(path)])
    assert report.summaries or report.predictions


def read_attack(path: Path) -> None:
    from smoothctl.reporting.measures import attacks
    from smoothctl.reporting.reader import read_frame

    frame = read_frame(path.with_name("certify.tsv"))
    if (log := attacks.attacks_on(frame)) is not None:
        attacks.successes(log)
        attacks.robust_accuracy(frame, log, (0.0, 0.25))


def go_on_with_log(path: Path) -> None:
    from smoothctl.base.files import read_json
    from smoothctl.records.columns import CERTIFY_COLUMNS
    from smoothctl.records.writer import open_log

    log, good = path.with_suffix(".tsv"), path.parents[1] / "good-run" / "certify.json"
    there = read_json(good)
    with open_log(log, CERTIFY_COLUMNS, there["settings"], there["about"], range(20), overwrite=False) as writer:
        writer.on_record()


def take_parts_in(path: Path) -> None:
    from smoothctl.records.columns import CERTIFY_COLUMNS
    from smoothctl.records.writer import Writer

    kept = path.read_bytes()
    log = path.with_name("whole.tsv")
    log.write_text("")
    Writer(log, CERTIFY_COLUMNS, frozenset()).absorb()
    path.write_bytes(kept)


def merge(path: Path) -> None:
    from smoothctl.records.shards import merge_shards

    merge_shards(path.with_name("parts.tsv"), {}, overwrite=True)


def go_on_training(path: Path) -> None:
    from smoothctl.cli import run

    out = io.StringIO()
    command = [*made.half_command(path.parent), "--json"]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        code = run(command)
    assert code in (0, 1, 2), out.getvalue()
    assert "this is a bug" not in out.getvalue(), out.getvalue()[-300:]
    shutil.copytree(path.parents[1] / "half-run", path.parent, dirs_exist_ok=True)


def worker_part(folder: Path) -> Path:
    rows = made.of_run("certify.tsv")(folder).read_text().split("\n", 1)[1]
    (folder / "whole.tsv.worker1").write_text(rows)
    return folder / "whole.tsv.worker1"


def read_run(path: Path) -> None:
    from smoothctl.records.run_directory import RunDirectory
    from smoothctl.reporting import costs

    run = RunDirectory(path.parent)
    run.read_settings()
    run.read_history()
    run.load_state()
    costs.tables(costs.find_runs([path.parent]), None)


def read_config(path: Path) -> None:
    from smoothctl.base.settings import settings_from_toml
    from smoothctl.smoothing.settings import CertifySettings, Computing

    settings_from_toml(path, "certify", [CertifySettings, Computing])


FIELD = "idx\tlabel\tpredict\tradius\tcorrect\ttime\n" + "".join(
    f"{place * 20}\t{place % 10}\t{place % 10 if place % 3 else -1}\t{0.1 * (place % 9):.3f}\t{int(place % 3 > 0)}\t"
    f"0:00:0{place % 9}.1\n"
    for place in range(30)
)
TOML = b'sigma = 0.5\nalpha = 1e-3\n[certify]\nn = 1000\nn0 = 10\nbatch_size = 5\nnoise = "gaussian"\n'
TABLE, DOCUMENT = (damage.bytes_of, damage.table), (damage.bytes_of, damage.document)

READERS = (
    Reader("log", made.of_run("certify.tsv"), TABLE, read_log),
    Reader("log of others", made.file("log.txt", FIELD.encode()), TABLE, read_log),
    Reader(
        "packed log",
        made.file("log.tsv.gz", gzip.compress(FIELD.encode())),
        (damage.bytes_of, damage.packed(damage.table)),
        read_log,
    ),
    Reader("settings of a log", made.of_run("certify.json"), DOCUMENT, lambda p: read_log(p.with_suffix(".tsv"))),
    Reader("log of attacks", made.of_run("certify.attack.tsv"), TABLE, read_attack),
    Reader("settings of attacks", made.of_run("certify.attack.json"), DOCUMENT, read_attack),
    Reader("log to go on with", made.of_run("certify.tsv"), TABLE, go_on_with_log),
    Reader("settings of a log to go on with", made.of_run("certify.json"), DOCUMENT, go_on_with_log),
    Reader("rows of another worker", worker_part, TABLE, take_parts_in),
    Reader("shard", made.of_run("parts.share-1-of-2.tsv"), TABLE, merge),
    Reader("settings of a shard", made.of_run("parts.share-1-of-2.json"), DOCUMENT, merge),
    Reader("settings of a run", made.of_run("settings.json"), DOCUMENT, read_run),
    Reader("epochs", made.of_run("epochs.jsonl"), (damage.bytes_of, damage.lines), read_run),
    Reader("state", made.of_run("state.pt"), (damage.bytes_of, damage.zipped, damage.checkpoint), read_run),
    Reader("state to go on from", made.half_run, (damage.checkpoint,), go_on_training, share=0.05),
    Reader("config", made.file("smoothctl.toml", TOML), (damage.bytes_of, damage.words), read_config),
)
