"""Plugins: faults are isolated and named, names are looked up with suggestions."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import smoothctl
from smoothctl.base.errors import SmoothctlError, UsageError
from smoothctl.hooks.registry import forget, registry
from tests.conftest import PluginMaker

ROOT = Path(__file__).resolve().parents[2]

PINK = """
import smoothctl

def sample(shape, sigma, draws):
    u = draws.uniform(shape) - 0.5
    return -sigma * u.sign() * (1 - 2 * u.abs()).log()

@smoothctl.hookimpl
def register_noises():
    return [smoothctl.Noise("pink", sample, lambda p, sigma: 0.0, norm="l1")]
"""


def failures() -> list[str]:
    return [str(failure) for failure in registry().failures]


def test_built_in_plugins_have_no_fault() -> None:
    forget()
    assert failures() == []


def test_an_outside_plugin_registers(make_plugin: PluginMaker) -> None:
    make_plugin("pink", PINK)
    entry = registry().find("noise", "pink")
    assert entry.provenance() == {
        "name": "pink", "plugin": "pink", "distribution": "dist-pink", "version": "1.0",
    }  # fmt: skip


def test_a_plugin_that_cannot_be_imported_is_set_aside(make_plugin: PluginMaker, capsys: pytest.CaptureFixture) -> None:
    make_plugin("broken", "import does_not_exist")
    assert registry().find("noise", "gaussian")
    assert failures() == [
        "plugin broken (dist-broken 1.0) set aside: ModuleNotFoundError: No module named 'does_not_exist'"
    ]
    assert "dist-broken 1.0" in capsys.readouterr().err


def test_what_several_registries_set_aside_is_said_once(
    make_plugin: PluginMaker, capsys: pytest.CaptureFixture
) -> None:
    make_plugin("broken", "import does_not_exist\n")
    assert registry("rule").failures == registry().failures != []
    assert capsys.readouterr().err.count("plugin broken") == 1


def test_a_plugin_that_ends_the_process_is_set_aside(make_plugin: PluginMaker) -> None:
    make_plugin("quitter", "raise SystemExit(3)")
    assert "quitter" in failures()[0]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("@smoothctl.hookimpl\ndef register_noise(): return []", ["register_noise"]),
        ("@smoothctl.hookimpl\ndef register_noises(extra): return []", ["register_noises", "extra"]),
        ("@smoothctl.hookimpl\ndef register_noises(): return 1 / 0", ["ZeroDivisionError"]),
        ("@smoothctl.hookimpl\ndef register_noises(): return [42]", ["42", "smoothctl.Noise"]),
        (
            "class M(smoothctl.Method): name = 'm'\n@smoothctl.hookimpl\ndef register_methods(): return [M]",
            ["M", "loss"],
        ),
    ],
)
def test_a_misfit_is_named_and_set_aside(make_plugin: PluginMaker, source: str, words: list[str]) -> None:
    make_plugin("misfit", f"import smoothctl\n{source}\n")
    assert registry().find("noise", "gaussian")
    (failure,) = failures()
    assert "misfit (dist-misfit 1.0)" in failure
    assert all(word in failure for word in words)


def test_a_plugin_for_another_version_is_set_aside(make_plugin: PluginMaker) -> None:
    make_plugin("old", PINK, requires=("smoothctl<0.1", "numpy"))
    assert failures() == [
        f"plugin old (dist-old 1.0) set aside: it wants smoothctl<0.1, this is smoothctl {smoothctl.__version__}"
    ]


def test_a_plugin_for_another_interface_is_set_aside(make_plugin: PluginMaker) -> None:
    make_plugin("this", "smoothctl_interface = 1\n" + PINK)
    make_plugin("next", "smoothctl_interface = 2\n" + PINK)
    (failure,) = failures()
    assert failure.startswith("plugin next (dist-next 1.0) set aside: ")
    assert failure.endswith("it is written for version 2 of the plugin interface, this is 1")
    assert registry().find("noise", "pink").source.plugin == "this"


def test_two_packages_with_one_plugin_name_are_both_named(make_plugin: PluginMaker) -> None:
    make_plugin("pink", PINK, distribution="first")
    make_plugin("pink", PINK, distribution="second")
    (failure,) = failures()
    assert "first" in failure
    assert "second" in failure


def test_two_plugins_with_one_noise_name_are_both_named(make_plugin: PluginMaker) -> None:
    make_plugin("one", PINK)
    make_plugin("two", PINK)
    (failure,) = failures()
    assert "the noise name 'pink' is taken by one (dist-one 1.0)" in failure
    assert "two (dist-two 1.0)" in failure


def test_a_member_of_a_family_cannot_be_taken(make_plugin: PluginMaker) -> None:
    make_plugin(
        "net",
        "import smoothctl\n@smoothctl.hookimpl\ndef register_architectures():\n"
        "    return [smoothctl.Architecture('timm/resnet18', print)]\n",
    )
    assert "the architecture name 'timm/' is taken by architectures.timm" in failures()[0]


def test_a_built_in_name_cannot_be_taken(make_plugin: PluginMaker) -> None:
    make_plugin("aaa", PINK.replace('"pink"', '"gaussian"'))
    assert registry().find("noise", "gaussian").source.distribution == "smoothctl"
    assert "taken by noises.gaussian" in failures()[0]


def test_plugins_can_be_switched_off(make_plugin: PluginMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    make_plugin("broken", "raise RuntimeError")
    monkeypatch.setenv("SMOOTHCTL_NO_PLUGINS", "1")
    assert failures() == []
    monkeypatch.delenv("SMOOTHCTL_NO_PLUGINS")
    monkeypatch.setenv("SMOOTHCTL_BLOCK_PLUGINS", "broken,datasets.mnist")
    forget()
    assert failures() == []
    with pytest.raises(UsageError, match="unknown dataset 'mnist'"):
        registry().find("dataset", "mnist")


def test_strict_mode_turns_faults_into_errors(make_plugin: PluginMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    make_plugin("broken", "raise RuntimeError('why')")
    monkeypatch.setenv("SMOOTHCTL_STRICT_PLUGINS", "1")
    with pytest.raises(SmoothctlError, match=r"broken.*why"):
        registry()


def test_an_observer_that_fails_is_set_aside_once(make_plugin: PluginMaker, capsys: pytest.CaptureFixture) -> None:
    make_plugin("watcher", "import smoothctl\n@smoothctl.hookimpl\ndef observe(event): raise ValueError('no')\n")
    for _ in range(3):
        registry().notify(smoothctl.Event("train.epoch", None, {}))
    assert capsys.readouterr().err.count("observe failed") == 1


def test_unknown_names_get_suggestions_and_name_what_failed(make_plugin: PluginMaker) -> None:
    make_plugin("broken", "raise RuntimeError('why')")
    with pytest.raises(UsageError, match=r"unknown architecture 'resnet_2'\. Did you mean .*resnet20") as caught:
        registry().find("architecture", "resnet_2")
    assert "plugin broken" in str(caught.value)


def test_aliases_and_families() -> None:
    assert registry().find("architecture", "r110").name == "resnet110"
    assert registry().find("architecture", "cifar_resnet110").name == "resnet110"
    assert registry().find("architecture", "regnetx").name == "regnetx_200mf"
    assert registry().find("architecture", "timm/resnet18").name == "timm/"
    with pytest.raises(UsageError):
        registry().find("architecture", "timm/")


def imported_modules(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


def test_the_engine_imports_no_plugin() -> None:
    for path in (ROOT / "smoothctl").rglob("*.py"):
        assert not {name for name in imported_modules(path) if name.startswith(("plugins", "smoothctl_plugins"))}, path


def test_plugins_use_the_public_names_only() -> None:
    for path in (ROOT / "plugins").rglob("*.py"):
        private = {name for name in imported_modules(path) if name.startswith("smoothctl.")}
        assert not private, path


def test_every_plugin_file_is_in_the_index() -> None:
    import tomllib

    index = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["smoothctl"].values())
    files = {
        "smoothctl_plugins." + ".".join(path.relative_to(ROOT / "plugins").with_suffix("").parts)
        for path in (ROOT / "plugins").rglob("*.py")
        if "@hookimpl" in path.read_text()
    }
    assert files == index


def test_public_names_can_all_be_imported() -> None:
    for name in smoothctl.__all__:
        assert getattr(smoothctl, name) is not None


def test_importing_smoothctl_is_light() -> None:
    code = "import sys, smoothctl; print([m for m in ('torch', 'scipy', 'pydantic', 'numpy') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
