"""How files come to be damaged: bytes, cells of tables, values of JSON, tensors and entries of archives."""

from __future__ import annotations

import copy
import gzip
import io
import json
import random
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

Damage = Callable[[random.Random, bytes], bytes]
VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1, 2**63, 10**400, -0.5, 1e308, 1e-320, float("nan"), float("inf"), "", "nan", "1e9999",
    "x" * 5000, "\x1b[31m", "\u202e", "../../etc/passwd", [], {}, [[]], [None], {"a": {}}, [1] * 1000, "0", "-1",
    "1_000", "\u0663", "0x10",
)  # fmt: skip
CELLS = (
    "", "nan", "inf", "-1", "1e20", "1e308", "9" * 400, "abc", "1,5", "0x1f", "\x00", "1:99999", "3:-1", "0:1 0:2",
    "\u0663",
    "1_0", "--", "1e-400", "true", " 1", "\ud7ff",
)  # fmt: skip


def bytes_of(rng: random.Random, content: bytes) -> bytes:
    """Flip, cut, repeat or insert bytes."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 5, 30))):
        how, place = rng.randrange(5), rng.randrange(len(data) + 1)
        if how == 0 and data:
            data[place % len(data)] ^= 1 << rng.randrange(8)
        elif how == 1:
            data[place:place] = bytes(rng.randrange(256) for _ in range(rng.choice((1, 4, 50))))
        elif how == 2:
            del data[place : place + rng.choice((1, 4, 100, 10**6))]
        elif how == 3:
            data[place:place] = data[place : place + rng.choice((1, 20, 300))]
        elif data:
            data[place % len(data)] = rng.choice((0, 9, 10, 13, 34, 44, 45, 58, 92, 255))
    return bytes(data)


def table(rng: random.Random, content: bytes) -> bytes:
    """Put other cells, rows and columns into a text of rows."""
    rows = [line.split("\t") for line in content.decode().split("\n")]
    for _ in range(rng.choice((1, 1, 3, 20))):
        row = rng.choice(rows)
        place, how = rng.randrange(len(row)), rng.randrange(6)
        if how <= 2:
            row[place] = rng.choice(CELLS)
        elif how == 3:
            rows.insert(rng.randrange(len(rows)), list(row))
        elif how == 4:
            row.insert(place, rng.choice(CELLS))
        else:
            del row[place:]
            row.append("")
    return "\n".join("\t".join(row) for row in rows).encode("utf-8", "surrogatepass")


def plain(rng: random.Random, value: Any) -> Any:
    """Another value somewhere in plain data; entries vanish, and are added."""
    value = copy.deepcopy(value)
    for _ in range(rng.choice((1, 1, 2, 4))):
        places = list(_places(value))
        if not places:
            return copy.deepcopy(rng.choice(VALUES))
        holder, key = rng.choice(places)
        how = rng.randrange(5)
        if how <= 2:
            holder[key] = copy.deepcopy(rng.choice(VALUES))
        elif how == 3:
            del holder[key]
        elif isinstance(holder, dict):
            holder[rng.choice(("radii", "rule", "format", "arch", "x", ""))] = copy.deepcopy(rng.choice(VALUES))
        else:
            holder.append(copy.deepcopy(rng.choice(VALUES)))
    return value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every holder and key in plain data, however deep, and once where it holds itself."""
    pending, seen = [value], set()
    while pending:
        holder = pending.pop()
        if id(holder) in seen:
            continue
        seen.add(id(holder))
        for key in holder if isinstance(holder, dict) else range(len(holder)) if isinstance(holder, list) else ():
            yield holder, key
            pending.append(holder[key])


def document(rng: random.Random, content: bytes) -> bytes:
    """JSON with other values."""
    return json.dumps(plain(rng, json.loads(content))).encode()


def lines(rng: random.Random, content: bytes) -> bytes:
    """JSON lines, of which one has other values."""
    rows = content.decode().splitlines()
    place = rng.randrange(len(rows))
    rows[place] = json.dumps(plain(rng, json.loads(rows[place])))
    return ("\n".join(rows) + "\n").encode()


def checkpoint(rng: random.Random, content: bytes) -> bytes:
    """A file of torch's with other values, names, shapes and types."""
    held = torch.load(io.BytesIO(content), weights_only=True)
    for _ in range(rng.choice((1, 1, 3))):
        holders = [held] + [part for part in held.values() if isinstance(part, dict) and part]
        holder = rng.choice(holders)
        key = rng.choice(list(holder))
        if isinstance(holder[key], torch.Tensor):
            holder[key] = _tensor(rng, holder[key])
        elif rng.randrange(4) == 0:
            holder[f"{key}.{rng.choice(('x', '0', 'module'))}"] = holder.pop(key)
        else:
            held_there = isinstance(holder[key], (dict, list)) and holder[key]
            holder[key] = plain(rng, holder[key]) if held_there else copy.deepcopy(rng.choice(VALUES))
    out = io.BytesIO()
    torch.save(held, out)
    return out.getvalue()


def _tensor(rng: random.Random, value: torch.Tensor) -> Any:
    return rng.choice(
        [
            value.flatten(), value[None], value.to(torch.int64) if value.is_floating_point() else value.float(),
            torch.full_like(value, float("nan")) if value.is_floating_point() else value * 0,
            value[:0] if value.ndim else value, torch.zeros(0), torch.zeros(1).expand(10**6), None,
            "tensor", value.to(torch.complex64), torch.tensor(3),
        ]
    )  # fmt: skip


def archive(rng: random.Random, content: bytes) -> bytes:
    """An npz with other arrays."""
    arrays = dict(np.load(io.BytesIO(content)))
    name = rng.choice(list(arrays))
    value = arrays[name]
    arrays[rng.choice((name, name, f"{name}2", "labels"))] = rng.choice(
        [
            value[:0], value[:1], value.astype(np.float64) * np.nan, value.astype(np.complex64), value.astype(str),
            value.ravel(), value[None], np.array(3), np.array(["a", "b"]), value.astype(np.int64) * 10**15,
            value.astype(np.float16), value.T,
        ]
    )  # fmt: skip
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def safetensors(rng: random.Random, content: bytes) -> bytes:
    """A file of safetensors whose description, or whose header, has other values."""
    size = int.from_bytes(content[:8], "little")
    header, tensors = json.loads(content[8 : 8 + size]), content[8 + size :]
    if rng.randrange(3):
        info = plain(rng, json.loads(header["__metadata__"]["info"]))
        header["__metadata__"]["info"] = json.dumps(info)
    else:
        header = plain(rng, header)
    packed_header = json.dumps(header).encode()
    return len(packed_header).to_bytes(8, "little") + packed_header + tensors


def words(rng: random.Random, content: bytes) -> bytes:
    """A text with other words and lines."""
    rows = [line.split(" ") for line in content.decode().split("\n")]
    for _ in range(rng.choice((1, 1, 3))):
        row, how = rng.choice(rows), rng.randrange(4)
        place = rng.randrange(len(row))
        if how <= 1:
            row[place] = rng.choice(CELLS)
        elif how == 2:
            rows.insert(rng.randrange(len(rows)), list(row))
        else:
            del row[place:]
            row.append("")
    return "\n".join(" ".join(row) for row in rows).encode("utf-8", "surrogatepass")


def packed(damage: Damage) -> Damage:
    """The damage of what a file of gzip holds."""

    def damage_content(rng: random.Random, content: bytes) -> bytes:
        return gzip.compress(damage(rng, gzip.decompress(content)))

    return damage_content


def zipped(rng: random.Random, content: bytes) -> bytes:
    """A zip archive whose entries are damaged, or lie about their size."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w") as new:
        names = old.namelist()
        chosen = rng.choice(names)
        for name in names:
            data = old.read(name)
            if name == chosen:
                data = rng.choice((bytes_of(rng, data), b"", data * 3))
            new.writestr(rng.choice((name, name, name, f"{name}x")) if name == chosen else name, data)
    return out.getvalue()
