"""Disturb certification, training and chains of students: python -m tests.soak [--kills 300] [--seed 0].

SIGKILL, SIGTERM, SIGINT, a disk that is full, and a second process with the same command, at random times; each job is
typed again until it ends, and must leave the rows or weights that it leaves undisturbed. The exit code is 1 if not.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tests.soak.attempts import OK, finish, soak, start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        assert finish(start("train --arch lenet --epochs 2 --out good", folder), "train") == OK
        done = soak(folder, folder / "good", given.kills, given.seed, lambda text: print(text, flush=True))
    print(f"{done.total()} times disturbed, no difference: {', '.join(f'{how} {n}' for how, n in done.items())}")


if __name__ == "__main__":
    main()
