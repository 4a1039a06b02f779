"""Every file that smoothctl reads: a good one, how it is damaged, and what reads it."""

from __future__ import annotations

import io
import json
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from tests.fuzz import damage

Read = Callable[[Path], object]
LARGE, LONG = 1 << 30, 10


@dataclass(frozen=True)
class Reader:
    """A kind of file. ``make(folder)`` leaves a good one, with what has to lie beside it, and gives its path."""

    name: str
    make: Callable[[Path], Path]
    damages: tuple[damage.Damage, ...]
    read: Read


def _run(name: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        from smoothctl.cli import run

        good = folder.parent / "good-run"
        if not good.exists():
            assert run(["train", "--arch", "lenet", "--epochs", "2", "--limit", "200", "--out", str(good)]) == 0
            assert run(["certify", str(good), "--n", "200", "--max", "20"]) == 0
            # What an interrupted run leaves.
            import torch

            weights = torch.load(good / "model.pt", weights_only=True)["state_dict"]
            torch.save(
                {"network": weights, "optimization": {"rate": 0.1}, "history": [{"epoch": 1, "seconds": 0.5}]},
                good / "state.pt",
            )
        shutil.copytree(good, folder, dirs_exist_ok=True)
        return folder / name

    return make


def _file(name: str, content: bytes) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
        return folder / name

    return make


def read_log(path: Path) -> None:
    from smoothctl.reporting.assemble import assemble
    from smoothctl.reporting.reader import read_frame

    report = assemble([read_frame(path)])
    assert report.summaries or report.predictions


def read_model(path: Path) -> None:
    from smoothctl.models.checkpoint import load_model

    load_model(path)


def read_run(path: Path) -> None:
    from smoothctl.records.run_directory import RunDirectory
    from smoothctl.reporting import costs

    run = RunDirectory(path.parent)
    run.read_settings()
    run.read_history()
    run.load_state()
    costs.tables(costs.find_runs([path.parent]), None)


def read_arrays(path: Path) -> None:
    from smoothctl.images.arrays import read_npz
    from smoothctl.images.datasets import pixels

    pixels(read_npz(path, "test"), 0)


def read_picture(path: Path) -> None:
    from smoothctl.evaluation.image_files import read_image

    read_image(path, (3, 8, 8))


def read_config(path: Path) -> None:
    from smoothctl.base.settings import settings_from_toml
    from smoothctl.smoothing.settings import CertifySettings, Computing

    settings_from_toml(path, "certify", [CertifySettings, Computing])


def _npz() -> bytes:
    out = io.BytesIO()
    images = np.arange(4 * 8 * 8 * 3, dtype=np.uint8).reshape(4, 8, 8, 3)
    np.savez(out, x_train=images, y_train=np.arange(4), x_test=images, y_test=np.arange(4))
    return out.getvalue()


def _image(kind: str) -> bytes:
    out = io.BytesIO()
    Image.fromarray(np.arange(12 * 12 * 3, dtype=np.uint8).reshape(12, 12, 3)).save(out, kind)
    return out.getvalue()


FIELD = "idx\tlabel\tpredict\tradius\tcorrect\ttime\n" + "".join(
    f"{place * 20}\t{place % 10}\t{place % 10 if place % 3 else -1}\t{0.1 * (place % 9):.3f}\t{int(place % 3 > 0)}\t"
    f"0:00:0{place % 9}.1\n"
    for place in range(30)
)
TOML = b'sigma = 0.5\nalpha = 1e-3\n[certify]\nn = 1000\nn0 = 10\nbatch_size = 5\nnoise = "gaussian"\n'


READERS = (
    Reader("log", _run("certify.tsv"), (damage.bytes_of, damage.table), read_log),
    Reader("log of others", _file("log.txt", FIELD.encode()), (damage.bytes_of, damage.table), read_log),
    Reader(
        "settings of a log",
        _run("certify.json"),
        (damage.bytes_of, damage.document),
        lambda p: read_log(p.with_suffix(".tsv")),
    ),
    Reader("settings of a run", _run("settings.json"), (damage.bytes_of, damage.document), read_run),
    Reader("epochs", _run("epochs.jsonl"), (damage.bytes_of, damage.lines), read_run),
    Reader("state", _run("state.pt"), (damage.bytes_of, damage.zipped, damage.checkpoint), read_run),
    Reader("model", _run("model.pt"), (damage.bytes_of, damage.zipped, damage.checkpoint), read_model),
    Reader("arrays", _file("images.npz", _npz()), (damage.bytes_of, damage.zipped, damage.archive), read_arrays),
    Reader("png", _file("image.png", _image("PNG")), (damage.bytes_of,), read_picture),
    Reader("jpeg", _file("image.jpg", _image("JPEG")), (damage.bytes_of,), read_picture),
    Reader("webp", _file("image.webp", _image("WEBP")), (damage.bytes_of,), read_picture),
    Reader("config", _file("smoothctl.toml", TOML), (damage.bytes_of,), read_config),
)


@dataclass(frozen=True)
class Finding:
    """An input at which something else happened than a result or a line."""

    reader: str
    seed: int
    what: str


def hunt(reader: Reader, folder: Path, seeds: range) -> Iterator[Finding]:
    """Damage a good file by each seed, and read it: a result and an error of ours are right, anything else is told."""
    import warnings

    from smoothctl.base.errors import SmoothctlError

    path = reader.make(folder)
    good = path.read_bytes()
    reader.read(path)
    for seed in seeds:
        rng = random.Random(f"{reader.name} {seed}")
        path.write_bytes(rng.choice(reader.damages)(rng, good))
        try:
            with time_limit(LONG), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                reader.read(path)
        except SmoothctlError as error:
            if "\n" in str(error):
                yield Finding(reader.name, seed, f"several lines: {error}")
        except OSError as error:
            if not error.filename:
                yield Finding(reader.name, seed, f"{type(error).__name__}: {error}")
        except BaseException as error:  # a panic of a library too
            yield Finding(reader.name, seed, f"{type(error).__name__}: {str(error)[:200]} at {_origin(error)}")
    path.write_bytes(good)


def _origin(error: BaseException) -> str:
    import traceback

    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if "/smoothctl/" in frame.filename]
    return " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(ours[-3:]))


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raise TimeoutError in what takes longer."""
    import signal

    def stop(*_: object) -> None:
        raise AssertionError(f"it takes more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def summary(findings: list[Finding]) -> str:
    return json.dumps([vars(each) for each in findings], indent=1)
