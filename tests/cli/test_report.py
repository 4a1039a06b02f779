"""``smoothctl report`` as people call it: exit codes, streams, formats, and what it does not import."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from smoothctl.cli import run
from tests.cli.conftest import Typed
from tests.reporting.make import HEADER, write_log

ROWS = ["0 3 3 0.6 1 0.5", "20 3 3 0.1 1 0.5", "40 3 -1 0.0 0 0.5", "60 3 5 0.9 0 0.5"]
REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def log(workplace: Path) -> Path:
    return write_log(workplace / "sigma_0.50.tsv", ROWS)


def report(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = run(["report", *map(str, arguments)])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_the_table_counts_every_image(log: Path, capsys):
    code, out, err = report(capsys, log, "--radii", "0,0.25,0.5", "--format", "csv")
    (row,) = csv.DictReader(io.StringIO(out))
    assert code == 0
    assert (row["r=0.00"], row["r=0.25"], row["r=0.50"], row["ACR"], row["abstain"]) == (
        "50.00",
        "25.00",
        "25.00",
        "0.1750",
        "25.00",
    )
    assert (row["images"], row["idx"]) == ("4", "0..60 step 20")
    assert "no settings file" in err


@pytest.mark.parametrize("format", ["rich", "markdown", "latex", "csv", "json", "html"])
def test_every_format_writes_to_stdout_only(log: Path, capsys, format: str):
    code, out, err = report(capsys, log, "--format", format, "--show", "all")
    assert code == 0
    assert "0.175" in out
    assert "0.175" not in err
    assert out.isascii() or format in ("rich", "html")


def test_json_is_one_document_of_unrounded_figures(log: Path, capsys):
    code, out, _ = report(capsys, log, "--json", "--radii", "0.1", "--show", "all")
    document = json.loads(out)
    assert code == 0
    assert document["version"] == 1
    (found,) = document["certify"]
    assert found["acr"] == pytest.approx(0.175)
    assert found["certified"] == [0.5]
    assert found["acr_interval"][0] <= 0.175 <= found["acr_interval"][1]


def test_the_schema_is_documented(log: Path, capsys):
    """Every key of the document stands in the docs."""
    two = write_log(log.with_name("b.tsv"), ROWS)
    _, out, _ = report(capsys, log, two, "--json", "--show", "all")
    text = (REPOSITORY / "docs" / "report.md").read_text(encoding="utf-8")
    document = json.loads(out)
    keys = {*document, *document["certify"][0], *document["certify"][0]["classes"][0], *document["comparisons"][0]}
    keys |= {*document["comparisons"][0]["acr"], *document["envelopes"][0], *document["envelopes"][0]["points"][0]}
    assert not {key for key in keys if f"`{key}`" not in text}


def test_a_gate_that_is_not_met_exits_with_three(log: Path, capsys):
    assert report(capsys, log, "--require", "acc@0.5>=0.2")[0] == 0
    code, out, err = report(capsys, log, "--require", "acc@0.5>=0.6", "--require", "acr>=0.1", "--json")
    assert code == 3
    assert json.loads(out)
    assert "acc@0.5>=0.6: sigma_0.50 has 0.25" in err
    assert "acr>=0.1" not in err
    assert report(capsys, log, "--require", "acc>=0.6")[0] == 2


def test_a_good_log_is_reported_beside_bad_ones(log: Path, capsys):
    Path("a.tsv").write_text("")
    Path("b.tsv").write_text(f"{HEADER}\n")
    code, out, err = report(capsys, "a.tsv", "b.tsv", log, "--format", "csv")
    assert code == 1
    assert "0.1750" in out
    assert "nan" not in out
    assert "a.tsv: no header" in err
    assert "b.tsv: no rows" in err
    assert "Traceback" not in err


def test_an_incomplete_run_is_marked(log: Path, capsys):
    log.with_suffix(".json").write_text(
        json.dumps({"settings": {"sigma": 0.5, "n": 100, "alpha": 0.001}, "planned": 10})
    )
    code, out, err = report(capsys, log, "--format", "csv")
    assert code == 0
    assert "INCOMPLETE 4/10" in out
    assert "INCOMPLETE 4/10" in err
    assert report(capsys, log, "--strict")[0] == 1


def test_other_images_are_named_and_common_ones_can_be_chosen(log: Path, capsys):
    other = write_log(log.with_name("half.tsv"), ROWS[2:])
    _, out, err = report(capsys, log, other, "--format", "csv")
    assert "different images" in err
    assert "--common-idx" in err
    _, out, err = report(capsys, log, other, "--format", "csv", "--common-idx")
    assert "different images" not in err
    assert {row["images"] for row in csv.DictReader(io.StringIO(out))} == {"2"}


def test_comparing_other_labels_is_an_error(log: Path, capsys):
    other = write_log(log.with_name("other.tsv"), [row.replace(" 3 ", " 65 ", 1) for row in ROWS])
    code, _, err = report(capsys, log, other, "--show", "compare")
    assert code == 1
    assert "idx 0 has label 3" in err
    assert "65" in err


def test_folders_are_searched(log: Path, capsys):
    for name in ("a/certify.tsv", "b/deep/certify.tsv"):
        write_log(Path("runs") / name, ROWS)
    _, out, _ = report(capsys, "--format", "csv")
    assert [row["run"] for row in csv.DictReader(io.StringIO(out))] == ["a/certify", "b/deep/certify"]


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (["nothing.tsv"], 2, "no log or run"), (["sigma_0.50.tsv", "--radii", "x"], 2, "--radii"),
        (["sigma_0.50.tsv", "--plot", "pie"], 2, "--plot"), (["sigma_0.50.tsv", "--rho", "2"], 2, "--rho"),
        (["sigma_0.50.tsv", "--what-if", "alpha=2"], 2, "between 0 and 1"),
        (["sigma_0.50.tsv", "--what-if", "beta=2"], 2, "--what-if beta"),
        (["sigma_0.50.tsv", "--what-if", "alpha=0.01"], 2, "it has no votes, and no sigma"),
        (["sigma_0.50.tsv", "--against", "none"], 2, "choose cohen2019"),
        (["sigma_0.50.tsv", "--plot", "ecdf"], 1, "needs votes"),
        (["sigma_0.50.tsv", "--format", "pdf"], 2, "--format"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(log: Path, capsys, arguments, code, line):
    found, _, err = report(capsys, *arguments)
    assert found == code
    said = [text for text in err.splitlines() if text.startswith("smoothctl: ")]
    assert len(said) == 1
    assert line in said[0]


def test_our_own_run_with_everything(run_copy: Path, capsys):
    assert run(["certify", str(run_copy), "--n", "100", "--max", "8", "--device", "cpu"]) == 0
    capsys.readouterr()
    arguments = [
        run_copy,
        "--what-if",
        "alpha=0.01",
        "--what-if",
        "n=50",
        "--what-if",
        "n=1000",
        "--what-if",
        "bound=lecuyer2019",
    ]
    code, out, _ = report(capsys, *arguments, "--format", "csv", "--intervals")
    notes = [row["run"] for row in csv.DictReader(io.StringIO(out))]
    assert code == 0
    assert [re.findall(r"\((.*)\)", note) for note in notes] == [
        [], ["alpha=0.01"], ["n=50, thinned"], ["n=1000, PROJECTION"], ["bound=lecuyer2019"],
    ]  # fmt: skip


def _python(code: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, env={**os.environ, **environment}, check=False
    )


def test_a_report_loads_torch_and_statsmodels_only_where_it_needs_them(log: Path):
    """A plain table needs neither, also where the noise of the log is asked what it proves."""
    settings = {"sigma": 0.5, "n": 1000, "alpha": 0.001, "noise": "gaussian"}
    log.with_suffix(".json").write_text(json.dumps({"settings": settings, "planned": 4}))
    heavy = "('torch', 'matplotlib', 'pandas', 'PIL', 'statsmodels')"
    code = (
        f"import sys; from smoothctl.cli import run; assert run(['report', {str(log)!r}, *sys.argv[1:]]) == 0; "
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    assert _python(code).stdout.decode().splitlines()[-1] == "[]"
    whole = _python(code.replace("*sys.argv[1:]", "'--show', 'all'"))
    assert whole.stdout.decode().splitlines()[-1] == "['pandas', 'statsmodels']"


def test_help_loads_nothing_heavy():
    code = (
        "import sys\nfrom smoothctl.cli import run\nrun(['report', '--help'])\n"
        "print([name for name in ('torch', 'numpy', 'scipy', 'matplotlib') if name in sys.modules])"
    )
    assert _python(code).stdout.decode().splitlines()[-1] == "[]"


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_console_that_is_not_utf8(log: Path, encoding: str):
    code = f"from smoothctl.cli import main; main(['report', {str(log)!r}, '--show', 'all'])"
    done = _python(code, PYTHONIOENCODING=encoding, PYTHONUTF8="0")
    assert done.returncode == 0, done.stderr
    assert "0.1750" in done.stdout.decode(encoding)
    assert b"?" * 5 not in done.stdout


def test_a_plot_needs_no_display(log: Path):
    code = f"from smoothctl.cli import main; main(['report', {str(log)!r}, '--plot', 'curve=c.png'])"
    assert _python(code, MPLBACKEND="TkAgg", DISPLAY="").returncode == 0
    assert Path("c.png").stat().st_size > 1000


def _commands() -> list[str]:
    text = (REPOSITORY / "docs" / "report.md").read_text(encoding="utf-8")
    return re.findall(r"^smoothctl (.*)$", text, re.MULTILINE)


@pytest.mark.parametrize("line", _commands())
def test_every_command_of_the_docs_parses(line: str):
    import shlex

    import typer

    from smoothctl.cli import make_app

    name, *arguments = shlex.split(line, comments=True)
    command = typer.main.get_command(make_app()).commands[name]
    command.make_context(name, arguments, resilient_parsing=False)


def test_learning_curves_need_no_log(typed: Typed, trained: Path, workplace: Path) -> None:
    shutil.copytree(trained, workplace / "run", ignore=shutil.ignore_patterns("*.tsv"))
    done = typed("report run --plot learning=learning.png")
    assert done.code == 0, done.err
    assert "run has no log yet; make one with: smoothctl certify run" in done.err
    assert (workplace / "learning.png").stat().st_size > 2000
    refused = typed("report run --plot curve=curve.png")
    assert refused.code == 1
    assert "no certification log to plot" in refused.err


def test_costs_are_a_report_of_their_own(trained: Path, capsys):
    code, _, err = report(capsys, "--cost", trained, "--require", "acr>=0.9", "--plot", "curve=c.png")
    assert code == 2
    assert "leave out --plot, --require" in err


def test_logs_whose_images_were_given_up_are_reported_in_every_way(typed: Typed, run_copy: Path, workplace: Path):
    assert typed(f"certify {run_copy} --max 12 --n 200 --skip-misclassified --out skipped.tsv").code == 0
    given_up = typed(f"certify {run_copy} --max 6 --radii 0.7 --n 20000 --out radii.tsv")
    assert given_up.code == 0
    assert "no ACR: the stopping rule" in given_up.err
    assert "may be at chance" not in given_up.err
    assert "printed with" not in typed("report radii.tsv --strict").err
    assert typed("report radii.tsv --strict").code == 0
    changed = typed("report skipped.tsv --what-if alpha=0.01 --what-if n=100 --plot alpha=a.png --plot ecdf=e.png")
    assert changed.code == 0, changed.err
    assert typed("report skipped.tsv radii.tsv --show all --json").code == 0


def test_a_pilot_is_counted(typed: Typed, run_copy: Path, workplace: Path):
    rows = typed(f"certify {run_copy} --max 8 --n0 10 --budget draft --n 2000 --out budget.tsv --json").json()["rows"]
    samples = [sum(row["selection"].values()) + row["n"] for row in rows]
    assert any(sum(row["selection"].values()) == 910 for row in rows)
    (log,) = typed("report budget.tsv --json").json()["certify"]
    assert log["evaluations"] == pytest.approx(sum(samples) / len(samples))


def test_a_log_of_all_images_and_one_of_some_become_an_estimate(typed: Typed, workplace: Path, run_copy: Path):
    assert typed(f"certify {run_copy} --n 100 --out cheap.tsv").code == 0
    assert typed(f"certify {run_copy} --n 2000 --every 8 --out full.tsv").code == 0
    shown = typed("report cheap.tsv full.tsv --show estimate --radii 0.25 --format csv")
    assert shown.code == 0, shown.err
    assert "\nfull,cheap,45/360," in shown.out
    assert "An ESTIMATE" in typed("report cheap.tsv full.tsv --show estimate --radii 0.25 --format markdown").out
    said = typed("report cheap.tsv --show estimate")
    assert said.code == 0
    assert "--show estimate: there is nothing to show" in said.err
