"""Published files of datasets: what is missing or damaged, and fetching them when that is asked for."""

from __future__ import annotations

import contextlib
import hashlib
import socket
import sys
from collections.abc import Iterator, Mapping
from http.client import HTTPException
from pathlib import Path

from smoothctl.base.errors import SmoothctlError, UsageError

ARCHIVES = (".tar.gz", ".tgz", ".tar", ".zip", ".gz")
SECONDS_TO_ANSWER = 30


class DatasetMissing(UsageError):
    """The files of a dataset are not where they were looked for; ``fetchable``: --download can get them; ``wrong``:
    what is the matter with those that lie there."""

    def __init__(self, dataset: str, place: Path, expected: str, fetchable: bool = True, wrong: str = ""):
        fetch = ", or fetch it with `download`" if fetchable else " (it cannot be fetched from here)"
        super().__init__(
            f"{dataset} is not in {place} (expected {expected}; {wrong or _describe(place)}); say where it is with "
            f"`data`{fetch}; nothing is downloaded unasked"
        )


class DownloadFailed(SmoothctlError):
    """A dataset's files could not be fetched; the message says how to do it by hand."""

    def __init__(self, dataset: str, url: str, place: Path, cause: str):
        super().__init__(
            f"{dataset} cannot be fetched from {url} ({cause}); try again later, or fetch that file where there is a "
            f"network, unpack it in {place}, and leave `download` out"
        )


def _describe(place: Path) -> str:
    """What lies at a place, with a hint at what can be used."""
    if not place.is_dir():
        return "there is no such folder" if not place.exists() else "that is a file"
    names = sorted(entry.name for entry in place.iterdir() if not entry.name.startswith("."))
    if not names:
        return "the folder is empty"
    arrays = [name for name in names if name.endswith(".npz")]
    packed = [name for name in names if name.endswith(ARCHIVES)]
    said = f"there is {', '.join(names[:5])}{', ...' if len(names) > 5 else ''}"
    if arrays:
        said += f"; for arrays say `data={place / arrays[0]}`"
    return said + (f"; unpack {packed[0]} there" if packed else "")


def root_of(data: Path | None, folder: str) -> Path:
    """Where a published ``folder``, such as ``MNIST/raw``, lies: below ``data``, or ``data`` is that folder, or a part
    of the way to it. By default below ``data`` in the current directory."""
    if data is None:
        return Path("data")
    steps, way = Path(folder).parts, data.absolute()
    for count in range(len(steps), 0, -1):
        if way.parts[-count:] == steps[:count] and not (data / folder).is_dir():
            return way.parents[count - 1]
    return data


def require_files(
    dataset: str, place: Path, files: Mapping[str, str | None], archive: tuple[str, str] | None = None
) -> None:
    """Raise DatasetMissing, which says what is wrong, unless the files lie below a place with their checksums (MD5).

    ``archive`` is the name and the checksum of the file that they are published in.
    """
    expected = f"{next(iter(files))}{' and its companions' if len(files) > 1 else ''}"
    missing = [name for name in files if not (place / name).is_file()]
    if missing:
        wrong = _look_at_archive(place, archive)
        if not wrong and len(missing) < len(files):
            wrong = f"{missing[0]} is missing"
        raise DatasetMissing(dataset, place, expected, wrong=wrong)
    for name, checksum in files.items():
        if checksum is not None and _md5(place / name) != checksum:
            raise DatasetMissing(
                dataset, place, expected, wrong=f"{name} is damaged or not whole: its checksum is not the published one"
            )


def _look_at_archive(place: Path, archive: tuple[str, str] | None) -> str:
    if archive is None or not (place / archive[0]).is_file():
        return ""
    name, checksum = archive
    if _md5(place / name) == checksum:
        return f"{name} lies there, unpack it: tar -xf {place / name} -C {place}"
    size = (place / name).stat().st_size
    return f"{name} lies there, but its {size:,} bytes are not what was published: fetch it again"


def _md5(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


@contextlib.contextmanager
def fetching(dataset: str, url: str, place: Path) -> Iterator[None]:
    """Fetch within: what is printed goes to stderr, silence ends, and what fails is a DownloadFailed."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(SECONDS_TO_ANSWER)
    try:
        place.mkdir(parents=True, exist_ok=True)
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except (OSError, HTTPException, RuntimeError, ValueError) as error:
        cause = " ".join(str(getattr(error, "reason", error)).split())[:300] or type(error).__name__
        raise DownloadFailed(dataset, url, place, cause) from None
    finally:
        socket.setdefaulttimeout(before)
