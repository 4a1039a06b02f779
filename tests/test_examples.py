"""The gates and the service of docs/examples, run as they stand."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "docs" / "examples"


def github(pipeline: dict[str, Any]) -> tuple[dict[str, str], list[tuple[str, bool]]]:
    """The variables of a pipeline, and its commands, each with whether it runs after a failure."""
    job = pipeline["jobs"]["gate"]
    return job["env"], [(step["run"], step.get("if") == "always()") for step in job["steps"] if "run" in step]


def gitlab(pipeline: dict[str, Any]) -> tuple[dict[str, str], list[tuple[str, bool]]]:
    job = pipeline["robustness"]
    return job["variables"], [(line, False) for line in (*job["before_script"], *job["script"])]


@pytest.mark.parametrize(("name", "read"), [("github", github), ("gitlab", gitlab)])
@pytest.mark.parametrize(("require", "code"), [("acc@0.25>=1%", 0), ("acc@0.25>=99%", 3)])
def test_a_gate_ends_as_it_should(name: str, read: Any, require: str, code: int, trained: Path, tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    variables, commands = read(yaml.safe_load((EXAMPLES / "gates" / f"{name}.yml").read_text()))
    (tmp_path / "models").mkdir()
    shutil.copy(trained / "model.pt", tmp_path / variables["MODEL"])
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, **variables, "REQUIRE": require, "PATH": path, "OMP_NUM_THREADS": "1"}
    ended = 0
    for command, always in commands:
        if command.startswith("pip install"):
            continue
        if ended == 0 or always:
            done = subprocess.run(
                ["bash", "-e", "-c", command],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            assert "Traceback" not in done.stderr
            ended = ended or done.returncode
    assert ended == code
    assert (tmp_path / "page" / "index.html").is_file()


def test_the_service_answers_class_or_abstain_with_its_radius(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fastapi")
    from fastapi.testclient import TestClient

    monkeypatch.setenv("SMOOTHCTL_MODEL", str(trained))
    monkeypatch.setenv("SMOOTHCTL_N", "200")
    spec = importlib.util.spec_from_file_location("service", EXAMPLES / "service" / "service.py")
    assert spec
    assert spec.loader
    service = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(service)
    client = TestClient(service.app)
    assert client.get("/").json()["classes"] == [str(digit) for digit in range(10)]
    image = (EXAMPLES / "seven.png").read_bytes()
    first, again = (client.post("/certify", content=image).json() for _ in range(2))
    assert first == again
    assert first["abstains"] == (first["class"] is None)
    assert first["radius"] >= 0
    assert first["arithmetic"].startswith("exact")
    refused = client.post("/certify", content=b"no image")
    assert refused.status_code == 422
    assert refused.json()["detail"] == "the image cannot be read (it is no image that Pillow knows)"
