"""Run the suite in a fresh environment with the lowest versions that pyproject.toml allows, or the newest.

python -m tests.dependencies lowest                              of dependencies and extras, exactly
python -m tests.dependencies newest --python python3.13          as pip chooses today
python -m tests.dependencies lowest tests/models -k timm         some tests only

It ends with the exit code of pytest, and says first which versions there are. The environment is removed unless
--keep DIR says where it is to stay.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
TOOLS = ("dev", "docs")
"""Extras of tools to develop with, which need newer versions of what users have."""
TESTING = ("pytest", "pytest-timeout", "pytest-xdist", "hypothesis", "setuptools>=77")


def declared() -> dict[str, list[str]]:
    """What pyproject.toml asks for: dependencies (under an empty name) and the extras of users."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {name: lines for name, lines in project["optional-dependencies"].items() if name not in TOOLS}
    return {"": project["dependencies"], **extras}


def lowest() -> list[str]:
    """Every dependency at its lower bound, as lines of pip's constraints."""
    return [line.replace(">=", "==") for lines in declared().values() for line in lines]


def install(python: str, place: Path, constraints: list[str]) -> Path:
    """A new environment with this checkout in it; returns its Python."""
    subprocess.run([python, "-m", "venv", place], check=True)
    own = place / "bin" / "python"
    limits = place / "constraints.txt"
    limits.write_text("\n".join(constraints))
    extras = ",".join(filter(None, declared()))
    subprocess.run([own, "-m", "pip", "install", "-q", "-e", f"{ROOT}[{extras}]", *TESTING, "-c", limits], check=True)
    return own


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["lowest", "newest"])
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--keep", type=Path)
    arguments, tests = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as temporary:
        constraints = lowest() if arguments.what == "lowest" else []
        python = install(arguments.python, arguments.keep or Path(temporary) / "environment", constraints)
        subprocess.run([python, "-m", "pip", "freeze", "--exclude-editable"], check=True)
        sys.exit(subprocess.run([python, "-m", "pytest", *(tests or ["-n", "2"])], cwd=ROOT, check=False).returncode)


if __name__ == "__main__":
    main()
