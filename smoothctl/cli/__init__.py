"""The command line: parsing and printing only. Nothing heavy is imported before a command runs."""

from __future__ import annotations

import functools
import importlib
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import typer

from smoothctl.base import console, memory
from smoothctl.base.about import __version__
from smoothctl.base.errors import SmoothctlError
from smoothctl.base.settings import COMMANDS
from smoothctl.cli import earlier, options, process

INTERRUPTED = 130
TRACEBACK = "--traceback"
EPILOG = (
    "Settings come from flags, then environment variables (SMOOTHCTL_TRAIN_SIGMA for `train --sigma`), then "
    "--config FILE.toml, then recipes, then defaults. "
    "Plugins: SMOOTHCTL_NO_PLUGINS=1 switches off those of other packages, SMOOTHCTL_BLOCK_PLUGINS=NAME,NAME some by "
    "name, SMOOTHCTL_STRICT_PLUGINS=1 makes a broken one an error. "
    "Exit codes: 0 done, 1 failed, 2 usage or settings, 3 a --require is not met, "
    "130 interrupted (the same command goes on)."
)


def make_app(names: Sequence[str] = COMMANDS) -> typer.Typer:
    """The command line with these commands; each is imported only if it is among them."""
    app = typer.Typer(
        name="smoothctl",
        help="Train, transfer, certify and report provably robust image classifiers (randomized smoothing).",
        epilog=EPILOG,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        pretty_exceptions_show_locals=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        rich_markup_mode="markdown",
    )
    app.callback()(_top)
    for name in names:
        module = importlib.import_module(f"smoothctl.cli.{name}")
        environment = {"auto_envvar_prefix": f"SMOOTHCTL_{name.upper()}"}
        app.command(name, epilog=module.EXAMPLES, context_settings=environment)(_owning_stdout(module.command))
    return app


def _owning_stdout(command: Callable[..., None]) -> Callable[..., None]:
    """A command during which stdout belongs to its results, whatever plugins and libraries print."""

    @functools.wraps(command)
    def owning(**values: Any) -> None:
        with console.owning_stdout():
            command(**values)

    return owning


def _print_version(asked: bool) -> None:
    if asked:
        console.result(f"smoothctl {__version__}")
        raise typer.Exit


def _top(
    version: bool = typer.Option(False, "--version", help="Print the version.", callback=_print_version, is_eager=True),
    traceback: bool = typer.Option(
        False, TRACEBACK, help="Show the traceback of a bug instead of keeping it in a file."
    ),
) -> None:
    pass


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit: errors that a user can mend are one line on stderr."""
    process.open_streams()
    memory.keep_freed()
    process.end_on_signals()
    words = sys.argv[1:] if arguments is None else arguments
    # torchrun on Python 3.11 takes `--n` for an option of its own unless `--` stands before our words.
    code = run(words[1:] if words[:1] == ["--"] else words)
    if not process.close_output():
        code = code or 1
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run one command, which says what it has to say on stderr; return its exit code."""
    with console.speaking(), console.wording(options.in_flags):
        return _run(arguments)


def _run(arguments: list[str]) -> int:
    words = [word for word in arguments if word != TRACEBACK]
    shown = words != arguments
    try:
        names = words[:1] if words[:1] and words[0] in COMMANDS else COMMANDS
        command = typer.main.get_command(make_app(names))
        result: Any = command.main(args=words, prog_name="smoothctl", standalone_mode=False)
        sys.stdout.flush()
    except typer.TyperException as error:
        message = " ".join(error.format_message().split())
        if message:  # else help was shown
            if better := earlier.hint(words[0] if words else "", message):
                message = f"{re.sub(r' [(]Possible options:.*', '', message)}; {better}"
            console.note(f"smoothctl: {message} (smoothctl {_command(words)}--help says more)")
        return error.exit_code
    except SmoothctlError as error:
        console.note(f"smoothctl: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        result = INTERRUPTED
    except BrokenPipeError:
        return 1
    except OSError as error:
        console.note(f"smoothctl: {error.strerror or error}{f': {error.filename}' if error.filename else ''}")
        return 1
    except MemoryError:
        console.note("smoothctl: there is not enough memory for this")
        return 1
    except Exception as error:
        process.report_fault(error, words, shown)
        return 1
    if result == INTERRUPTED:
        console.note("smoothctl: interrupted; what is finished is on disk, and the same command goes on")
    return result if isinstance(result, int) else 0


def _command(arguments: list[str]) -> str:
    return f"{arguments[0]} " if arguments and arguments[0] in COMMANDS else ""
