"""Write docs/terminal.md: what a terminal of 80x24 shows for the commands on the card, as tmux captures it.

python docs/capture_terminal.py
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COLUMNS, LINES = 80, 24
PROMPT = "$ "
PATIENCE = 600
SESSION = "smoothctl-capture"

EMPTY = (
    "smoothctl",
    "smoothctl train --help | head -40",
    "smoothctl certify --n 100000 --alpha 0.001",
    "smoothctl transfer --teacher r110.pt --student regnetx",
    "smoothctl report runs",
)
FILES = (
    "smoothctl train --method macer",
    "smoothctl certify --n 10000 --alpha 0.001 --every 12",
    "smoothctl transfer --teacher runs/digits-macer-lenet-0.25 --student lenet --epochs 10",
    "smoothctl certify --radii 0.25,0.5 --every 12",
    "smoothctl report runs --show measures",
    "smoothctl predict runs/digits-macer-lenet-0.25 seven.png",
    "smoothctl certify missing.pt",
)


def tmux(*words: str) -> str:
    return subprocess.run(["tmux", *words], check=True, capture_output=True, text=True).stdout


def screen() -> str:
    """Everything that was shown, with the lines that have scrolled away."""
    return tmux("capture-pane", "-p", "-t", SESSION, "-S", "-").rstrip()


def typed(line: str) -> str:
    """Type a line, wait for the prompt, and return what the terminal shows."""
    tmux("send-keys", "-t", SESSION, "clear; tmux clear-history -t " + SESSION, "Enter")
    time.sleep(1)
    tmux("send-keys", "-t", SESSION, "-l", line)
    tmux("send-keys", "-t", SESSION, "Enter")
    start = time.monotonic()
    while time.monotonic() - start < PATIENCE:
        time.sleep(1)
        shown = screen()
        if shown.endswith("\n" + PROMPT.strip()):
            return "\n".join(text.rstrip() for text in shown.splitlines()[:-1])
    raise SystemExit(f"{line} took more than {PATIENCE} s")


def main() -> None:
    root = Path(__file__).resolve().parents[1]
    parts = [
        "# At a terminal",
        f"What a terminal of {COLUMNS} columns and {LINES} lines shows, captured by `python docs/capture_terminal.py`. "
        "Progress is overwritten as it goes; what is captured is what stays.",
    ]
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "seven.png").write_bytes((root / "docs" / "examples" / "seven.png").read_bytes())
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        shell = f"env -i PATH={shlex.quote(path)} HOME={name} TERM=screen-256color PS1='{PROMPT}' LANG=C.UTF-8 sh"
        tmux("new-session", "-d", "-s", SESSION, "-x", str(COLUMNS), "-y", str(LINES), "-c", name, shell)
        try:
            time.sleep(1)
            for title, lines in (("In an empty folder", EMPTY), ("With files", FILES)):
                parts.append(f"## {title}")
                parts += [f"```text\n{typed(line)}\n```" for line in lines]
        finally:
            tmux("kill-session", "-t", SESSION)
    (root / "docs" / "terminal.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
