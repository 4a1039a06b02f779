"""What a file is that was given for a model and is none, as far as its beginning tells."""

from __future__ import annotations

import zipfile
from pathlib import Path

PAGES = (b"<!doctype html", b"<html", b"<?xml")
PACKED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"7z\xbc\xaf", b"Rar!", b"\x28\xb5\x2f\xfd")
ZIP = b"PK\x03\x04"
TAR, TAR_AT = b"ustar", 257
OTHERS = {
    b"\x89HDF": "is an HDF5 file, as Keras writes them, not one of PyTorch's",
    b"\x93NUMPY": "is a NumPy array, not a state dict: torch.save writes one",
}


def something_else(file: Path) -> str:
    """Say what a file is, and what to do about it; empty if its beginning does not tell."""
    with file.open("rb") as content:
        start = content.read(512)
    if not start:
        return "is empty"
    if start.startswith(b"version https://git-lfs"):
        return "is a pointer of Git LFS, not the file itself; fetch that with: git lfs pull"
    if start.lstrip().lower().startswith(PAGES):
        return "is a web page, as some downloads leave instead of the file; download the file itself"
    if start.startswith(PACKED) or start[TAR_AT : TAR_AT + len(TAR)] == TAR:
        return "is an archive; unpack it and give the file in it"
    if start.startswith(ZIP):
        return _zipped(file)
    if start[4:8] == b"TFL3":
        return "is a model of TensorFlow Lite, not one of PyTorch's"
    return next((said for mark, said in OTHERS.items() if start.startswith(mark)), "")


def _zipped(file: Path) -> str:
    """torch.save writes zip archives too, of one folder."""
    try:
        names = zipfile.ZipFile(file).namelist()
    except zipfile.BadZipFile:
        return "is damaged: its end is missing; was it copied or downloaded whole?"
    if names and all(name.endswith(".npy") for name in names):
        return "holds NumPy arrays, not a state dict: torch.save writes one"
    inside = [name for name in names if name.endswith((".pt", ".pth", ".tar", ".ckpt", ".safetensors", ".bin"))]
    return f"is an archive; unpack it and give the file in it, such as {inside[0]}" if inside else ""
