"""What the flags of research code are called here."""

from __future__ import annotations

import re

FLAGS = {
    "noise-sd": "--sigma", "outfile": "--out", "outdir": "--out", "batch": "--batch-size", "gpu": "--device cuda:0",
    "lr-step-size": "--milestones", "num-noise-vec": "-o m=K", "gauss-num": "-o k=K", "data-dir": "--data",
    "dataset-dir": "--data", "base-classifier": "MODEL, without a flag", "model": "MODEL, without a flag",
    "checkpoint": "MODEL, without a flag", "epoch": "--epochs", "learning-rate": "--lr",
}  # fmt: skip
"""By the earlier name, with hyphens for underscores."""
EXTRA = "certify takes one MODEL; the others are flags: --dataset, --sigma, --out"


def hint(command: str, message: str) -> str:
    """What to type instead, for a message of the parser; empty if that is not known."""
    if command == "certify" and "unexpected extra argument" in message:
        return EXTRA
    found = re.search(r"No such option: --([\w-]+)", message)
    name = found[1].lower().replace("_", "-") if found else ""
    return f"here it is {FLAGS[name]}" if name in FLAGS else ""
