"""Read damaged files by the hundred thousand: python -m tests.fuzz [--inputs 200000] [--reader NAME] [--seed 0].

Each reader gets as many of the inputs as the others. A traceback, an error of several lines, more than 10 s, or more
than 1 GB of memory is a finding; it is printed with the seed that makes it again, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.readers import LARGE, READERS, hunt


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=200_000, help="damaged files in all")
    parser.add_argument("--reader", help="only this one")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    given = parser.parse_args()
    chosen = [reader for reader in READERS if given.reader in (None, reader.name)]
    each, found = -(-given.inputs // len(chosen)), 0
    with tempfile.TemporaryDirectory() as folder:
        for reader in chosen:
            start, own = time.perf_counter(), 0
            for finding in hunt(reader, Path(folder) / reader.name, range(given.seed, given.seed + each)):
                own += 1
                print(f"{finding.reader} {finding.seed}: {finding.what}", flush=True)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            print(f"{reader.name}: {each:,} inputs, {own} findings, {time.perf_counter() - start:.0f} s", flush=True)
            found += own
    print(f"{each * len(chosen):,} inputs, {found} findings, at most {peak / 2**20:.0f} MB")
    return int(found > 0 or peak > 2 * LARGE)


if __name__ == "__main__":
    sys.exit(main())
