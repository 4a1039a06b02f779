"""What is published: a wheel that works without the source tree, and the documentation as a site."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--wheel-dir", str(out)]
    tree = tmp_path_factory.mktemp("source") / "tree"
    kept = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    for name in kept:
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_bytes((ROOT / name).read_bytes())
    subprocess.run([*pip, str(tree)], check=True, capture_output=True)
    (made,) = out.glob("*.whl")
    return made


def test_every_package_of_the_source_is_in_the_wheel(wheel: Path) -> None:
    held = set(zipfile.ZipFile(wheel).namelist())
    for folder, package in (("smoothctl", "smoothctl"), ("plugins", "smoothctl_plugins")):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".pyi", ".csv", ".css", ".html", ".txt", ".typed"):
                assert f"{package}/{path.relative_to(ROOT / folder)}" in held
    assert not [name for name in held if name.startswith(("tests/", "docs/"))]


def test_a_wheel_trains_certifies_and_reports_without_the_source(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(site), str(wheel)]
    subprocess.run(pip, check=True, capture_output=True)
    environment = {**os.environ, "PYTHONPATH": str(site), "OMP_NUM_THREADS": "1"}

    def typed(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, *words], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert str(site) in typed("-c", "import smoothctl, smoothctl_plugins; print(smoothctl_plugins.__path__)")
    typed("-m", "smoothctl", "train", "--arch", "lenet", "--epochs", "1", "--limit", "200", "--out", "run")
    typed("-m", "smoothctl", "certify", "run", "--n", "100", "--max", "5")
    assert "ACR" in typed("-m", "smoothctl", "report", "run", "--out", "page")
    assert (tmp_path / "page" / "index.html").is_file()
    typed("-m", "smoothctl", "plugins", "new", "my-idea")


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    """Strict: a dead link, a page that is nowhere, and a name that is not in the code are errors."""
    pytest.importorskip("mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stdout + done.stderr
    assert "certify" in (tmp_path / "site" / "api" / "index.html").read_text()


def test_the_newest_entry_of_the_changes_is_this_version() -> None:
    from smoothctl import __version__

    headings = [line for line in (ROOT / "CHANGELOG.md").read_text().splitlines() if line.startswith("## ")]
    assert headings[0].split()[1] == __version__
