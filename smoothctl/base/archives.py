"""Archives that torch writes: what is in them, before anything is unpacked."""

from __future__ import annotations

import zipfile
from pathlib import Path

from smoothctl.base.errors import SmoothctlError

# A file of torch's stores tensors as they are: only its pickle, a few percent, can be compressed.
SLACK_BYTES = 1 << 20


def check_archive(file: Path) -> None:
    """Raise SmoothctlError for a TorchScript program, and for an archive that unpacks to far more than its size.

    What is no archive passes; a damaged one raises what zipfile does.
    """
    if not zipfile.is_zipfile(file):
        return
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
    if any(part == "code" for entry in entries for part in entry.filename.split("/")[:-1]):
        raise SmoothctlError(
            f"{file} is a TorchScript program, which is code; where it was made, save its weights alone: "
            f"torch.save(torch.jit.load({file.name!r}).state_dict(), 'weights.pt')"
        )
    unpacked = sum(entry.file_size for entry in entries)
    if unpacked > 2 * file.stat().st_size + SLACK_BYTES:
        raise SmoothctlError(f"{file} would unpack to {unpacked:,} bytes, which no file of torch's does")
