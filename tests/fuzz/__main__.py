"""Read damaged files by the hundred thousand: python -m tests.fuzz [--inputs 200000] [--reader NAME] [--seed 0].

Each reader gets as many of the inputs as the others, slow ones fewer. A traceback, an error of several lines, more
than 10 s, or 1 GiB of memory is a finding; it is printed with the seed that makes it again, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.hunting import hunt, peak_bytes
from tests.fuzz.readers import READERS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=200_000, help="damaged files in all")
    parser.add_argument("--reader", help="only this one")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    given = parser.parse_args()
    chosen = [reader for reader in READERS if given.reader in (None, reader.name)]
    one = given.inputs / sum(reader.share for reader in chosen)
    inputs = found = 0
    with tempfile.TemporaryDirectory() as folder:
        for reader in chosen:
            start, own, each = time.perf_counter(), 0, math.ceil(one * reader.share)
            for finding in hunt(reader, Path(folder) / reader.name, range(given.seed, given.seed + each)):
                own += 1
                print(f"{finding.reader} {finding.seed}: {finding.what}", flush=True)
            print(f"{reader.name}: {each:,} inputs, {own} findings, {time.perf_counter() - start:.0f} s", flush=True)
            inputs, found = inputs + each, found + own
    print(f"{inputs:,} inputs, {found} findings, {peak_bytes() >> 20} MiB at most, libraries included")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
