"""What every command keeps to: light help, one line for bad input, exit codes, clean stdout."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from smoothctl.cli import make_app
from tests.cli.conftest import Typed, finish, start

COMMANDS = ("train", "transfer", "certify", "predict", "attack", "report", "plugins")
HEAVY = ("torch", "torchvision", "timm", "scipy", "pandas", "matplotlib", "sklearn", "numpy")
FLAGS = "smoothctl_plugins.rules"
"""The only plugins that help loads: options of stopping rules are flags."""


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_imports_nothing_heavy_and_no_plugin_but_rules(command: str) -> None:
    code = (
        "import sys\nfrom smoothctl.cli import run\n"
        f"code = run({[command, '--help'] if command else ['--help']!r})\n"
        f"heavy = [name for name in {HEAVY!r} if name in sys.modules]\n"
        f"plugins = [name for name in sys.modules if name.startswith('smoothctl_plugins.') and {FLAGS!r} not in name]\n"
        "print(code, heavy + plugins)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 []"
    if command:
        assert "Examples:" in done.stdout


def test_without_a_command_there_is_help_and_nothing_else(typed: Typed) -> None:
    done = typed("")
    assert "Commands" in done.out + done.err
    assert "says more" not in done.err


def test_messages_name_settings_as_python_or_as_flags(typed: Typed, workplace: Path) -> None:
    from smoothctl import Assumptions, UsageError, load_model

    torch.save({"a": {"w": torch.zeros(1)}, "b": {"w": torch.zeros(1)}}, workplace / "two.pt")
    with pytest.raises(UsageError, match="choose with `state_key=KEY`"):
        load_model(workplace / "two.pt", given=Assumptions(arch="lenet"))
    assert "choose with --state-key KEY" in typed("certify two.pt --arch lenet --n 100").err
    (workplace / "log.tsv").write_text("idx\tlabel\tpredict\tradius\n0\t1\t1\t0.5\n")
    assert typed("report log.tsv --out page").code == 0
    assert "--dataset names it" in (workplace / "page" / "index.html").read_text()
    (workplace / "own.py").write_text("")
    for words in (
        "certify two.pt --state-key a --arch own.py:f",
        "transfer --teacher two.pt --state-key a --teacher-arch own.py:f --student lenet",
    ):
        flag = "--teacher-arch" if "teacher" in words else "--arch"
        assert f"{flag} own.py:f: own.py has nothing callable" in typed(words).err


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("train --noise_sd 0.25", "No such option: --noise_sd; here it is --sigma"),
        ("train --gpu 0", "here it is --device cuda:0"),
        ("train --num-noise-vec 2", "here it is -o m=K"),
        ("certify m.pt --outfile x.tsv", "here it is --out"),
        ("certify --base_classifier m.pt", "here it is MODEL, without a flag"),
        ("certify cifar10 m.pt 0.25 out.tsv", "certify takes one MODEL; the others are flags"),
        ("certify m.pt --N 100", "Possible options: --n"),
    ],
)
def test_flags_of_research_code_are_told_by_their_names_here(typed: Typed, line: str, words: str) -> None:
    done = typed(line)
    assert done.code == 2
    assert words in done.err
    assert len(done.err.splitlines()) == 1


def test_help_works_in_an_empty_environment() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "smoothctl", "--help"], env={}, capture_output=True, text=True, check=True
    )
    for words in ("SMOOTHCTL_NO_PLUGINS", "SMOOTHCTL_BLOCK_PLUGINS", "SMOOTHCTL_STRICT_PLUGINS", "130"):
        assert words in " ".join(done.stdout.split())


def test_certify_states_the_limits_of_the_guarantee(typed: Typed) -> None:
    told = " ".join(typed("certify --help").out.split())
    for words in ("probability 1-alpha per image", "smoothed classifier", "L2", "pixels in [0,1]", "floating-point"):
        assert words in told


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("--sigma 0", ["--sigma", "greater than 0"]),
        ("--sigma -0.5", ["--sigma", "greater than 0"]),
        ("--sigma nan", ["--sigma"]),
        ("--alpha 0", ["--alpha", "greater than 0"]),
        ("--alpha 0.6", ["--alpha", "less than 0.5"]),
        ("--alpha 0.9999999999999999", ["--alpha", "less than 0.5"]),
        ("--n 0", ["--n:", "greater than or equal to 1"]),
        ("--n0 0", ["--n0", "greater than or equal to 1"]),
        ("--n 9", ["n=9", "alpha=0.001", "n>=10"]),
        ("--batch-size 0", ["--batch-size", "greater than or equal to 1"]),
        ("--skip 0", ["--every", "greater than or equal to 1"]),
        ("--max 0", ["--max", "greater than or equal to 1"]),
        ("--max -1", ["--max"]),
        ("--seed -1", ["--seed"]),
        ("--nonsense 3", ["No such option", "--nonsense"]),
        ("--sigm 3", ["--sigm", "--sigma"]),
        ("--n many", ["--n", "integer"]),
    ],
)
def test_nonsense_is_refused_in_one_line(typed: Typed, workplace: Path, flags: str, words: list[str]) -> None:
    done = typed(f"certify model.pt {flags}")
    assert done.code == 2
    assert done.out == ""
    assert len(done.err.splitlines()) == 1
    assert all(word in done.err for word in words), done.err
    assert list(workplace.iterdir()) == []


def test_nonsense_is_refused_before_torch_is_imported() -> None:
    code = "import sys\nfrom smoothctl.cli import run\nprint(run(['certify', '--sigma', '0']), 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "2 False\n"


def test_predict_names_the_least_n(typed: Typed) -> None:
    done = typed("predict model.pt --n 10")
    assert done.code == 2
    assert "predict needs n>=11" in done.err


@pytest.mark.parametrize(
    "line",
    [
        "certify nope.pt",
        "predict nope.pt",
        "transfer --teacher nope.pt --student lenet",
        "report nope.tsv",
        "certify",
        "train --arch resnet_19",
        "train --dataset cifar",
        "train --method nothing",
        "train --noise pink",
        "train --method crt",
        "train -o whatever=1",
        "train -o whatever",
        "train --milestones a,b",
        "train --device tpu",
        "train --device cuda:99",
        "train --dataset cifar10 --data .",
        "train --dataset mnist --data missing.npz",
        "train --config missing.toml",
        "plugins nothing",
    ],
)
def test_bad_input_exits_2_with_one_line_and_writes_nothing(typed: Typed, workplace: Path, line: str) -> None:
    done = typed(line)
    assert done.code == 2, done.err
    assert "Traceback" not in done.err
    assert done.err.splitlines()[-1].startswith("smoothctl: ")
    assert list(workplace.iterdir()) == []


def test_a_missing_dataset_says_where_it_looked_and_how_to_get_it(typed: Typed, workplace: Path) -> None:
    (workplace / "here").mkdir()
    told = typed("train --dataset cifar10 --data here --epochs 1").err
    for words in ("here", "data_batch_1", "--data", "--download"):
        assert words in told


def test_exit_code_is_that_of_the_failure() -> None:
    assert finish(start("certify nope.pt", Path.cwd())).code == 2


def test_internal_errors_show_no_local_variables(typed: Typed, workplace: Path) -> None:
    """A bug shows a plain traceback: no values of variables, which may be secret."""
    assert make_app().pretty_exceptions_enable is False
    assert make_app().pretty_exceptions_show_locals is False
    code = (
        "import smoothctl.cli.evaluation as evaluation\n"
        "def explode(model):\n    token = 'hf_' + 'SECRET123'\n    raise TypeError('a bug')\n"
        "evaluation.choose_model = explode\n"
        "from smoothctl.cli import main\nmain(['certify'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={"HF_TOKEN": "hf_SECRET123"}, check=False
    )
    assert done.returncode == 1
    assert "TypeError: a bug" in done.stderr
    assert "hf_SECRET123" not in done.stdout + done.stderr


def test_output_survives_consoles_that_are_not_unicode(trained: Path, workplace: Path) -> None:
    for encoding in ("ascii", "cp1252"):
        done = finish(start("plugins", workplace, PYTHONUTF8="0", PYTHONIOENCODING=encoding))
        assert done.code == 0
        assert "gaussian" in done.out


def test_settings_come_from_flag_then_environment_then_file(
    typed: Typed, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workplace / "run.toml").write_text(
        "sigma = 0.5\n[train]\nepochs = 7\nlr = 1e-1\n[train.option]\n[certify]\nn = 5\n"
    )
    resolved = typed("train --config run.toml --dry-run --json").json()["settings"]
    assert (resolved["sigma"], resolved["epochs"], resolved["lr"]) == (0.5, 7, 0.1)
    monkeypatch.setenv("SMOOTHCTL_TRAIN_EPOCHS", "8")
    assert typed("train --config run.toml --dry-run --json").json()["settings"]["epochs"] == 8
    assert typed("train --config run.toml --epochs 9 --dry-run --json").json()["settings"]["epochs"] == 9


def test_a_settings_file_with_unknown_names_is_refused(typed: Typed, workplace: Path) -> None:
    (workplace / "run.toml").write_text("[train]\nsigmma = 0.5\n")
    done = typed("train --config run.toml --dry-run")
    assert done.code == 2
    assert "sigmma" in done.err


def test_version(typed: Typed) -> None:
    assert typed("--version").out == "smoothctl 0.1.0\n"


def test_plugins_lists_and_explains(typed: Typed) -> None:
    listed = typed("plugins").out
    for words in ("gaussian", "crt", "resnet110", "r110", "digits", "Of smoothctl 0.1.0"):
        assert words in listed
    explained = typed("plugins crt").out
    for words in ("outputs = logits", "weight = 1.0", "recipe:", "table 16"):
        assert words in explained
    document = typed("plugins --json").json()
    kinds = {"method", "architecture", "dataset", "noise", "rule", "backend", "importer", "tracker"}
    assert {entry["kind"] for entry in document["plugins"]} == kinds
    assert typed("plugins r110 --json").json()["plugins"][0]["name"] == "resnet110"
