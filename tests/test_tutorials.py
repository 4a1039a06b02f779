"""The tutorials run as they stand: their Python is written to the file that it names, their commands are typed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
@pytest.mark.timeout(600)
def test_a_tutorial_runs_as_it_stands(page: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs" / "examples", tmp_path / "docs" / "examples")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    assert len(blocks) > 5
    for language, text in blocks:
        if language == "python":
            (tmp_path / text.partition("\n")[0].removeprefix("# ")).write_text(text)
            continue
        done = subprocess.run(
            ["sh", "-e", "-c", text], cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{text}{done.stdout}{done.stderr}"
        assert "Traceback" not in done.stderr
    assert (tmp_path / "page" / "index.html").stat().st_size > 100_000
