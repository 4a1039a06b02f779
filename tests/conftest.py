"""What tests share: an isolated place to work in, a small trained run, and plugins from files."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")

NO_SKIPS = "SMOOTHCTL_NO_SKIPS"
"""Set where everything that a test may need is installed: then only a missing GPU is a reason to skip."""
skipped: list[str] = []


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if "GPU" not in reason:
            skipped.append(f"{report.nodeid}: {reason}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    if os.environ.get(NO_SKIPS) and skipped and not hasattr(session.config, "workerinput"):
        print(f"\n{NO_SKIPS} is set and tests were skipped:", *skipped, sep="\n  ")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(autouse=True)
def speaking() -> Iterator[None]:
    """Notes and warnings on stderr, as people read them."""
    from smoothctl.base import console

    with console.speaking():
        yield


@pytest.fixture
def shared() -> Path:
    """The folder of real data and logs that may lie beside the checkout."""
    if not SHARED.is_dir():
        pytest.skip("the folder shared/ with real data does not lie beside this checkout")
    return SHARED


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run directory: lenet on digits at sigma 0.25, two epochs. Not to be written to."""
    from smoothctl.cli import run

    out = tmp_path_factory.mktemp("runs") / "small"
    assert run(["train", "--arch", "lenet", "--sigma", "0.25", "--epochs", "2", "--out", str(out)]) == 0
    return out


@pytest.fixture
def run_copy(trained: Path, tmp_path: Path) -> Path:
    """A copy of the trained run that a test may write to."""
    import shutil

    return Path(shutil.copytree(trained, tmp_path / "runs" / "small"))


PluginMaker = Callable[..., Path]


@pytest.fixture
def make_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PluginMaker]:
    """Make a plugin without pip: ``make_plugin("name", "source code", requires=[...])``."""
    from smoothctl.hooks.registry import forget

    def make(name: str, source: str, *, distribution: str | None = None, requires: tuple[str, ...] = ()) -> Path:
        dist = distribution or f"dist-{name}"
        place = tmp_path / f"site-{dist}"
        info = place / f"{dist.replace('-', '_')}-1.0.dist-info"
        info.mkdir(parents=True)
        module = f"{dist.replace('-', '_')}_module"
        (place / f"{module}.py").write_text(source)
        lines = [
            "Metadata-Version: 2.1",
            f"Name: {dist}",
            "Version: 1.0",
            *(f"Requires-Dist: {line}" for line in requires),
        ]
        (info / "METADATA").write_text("\n".join(lines) + "\n")
        (info / "entry_points.txt").write_text(f"[smoothctl]\n{name} = {module}\n")
        monkeypatch.delitem(sys.modules, module, raising=False)
        monkeypatch.syspath_prepend(str(place))
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(place), os.environ.get("PYTHONPATH", "")]))
        forget()
        return place

    yield make
    forget()
