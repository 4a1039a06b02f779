"""Write a package of plugins whose own tests pass as generated."""

from __future__ import annotations

import keyword
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from string import Template

from smoothctl.base.about import __version__
from smoothctl.base.errors import UsageError

KINDS = ("method", "architecture", "dataset", "noise", "rule", "backend", "importer", "tracker", "table", "plot")
"""What a template is there for."""


def write_package(name: str, kinds: Sequence[str], place: Path) -> list[Path]:
    """Write the package ``name`` with a plugin of each kind into ``place``/``name``; returns its files.

    Raises UsageError for a name that no package can have, and if the folder is there already.
    """
    module = name.lower().replace("-", "_")
    if not module.isidentifier() or not module.isascii() or keyword.iskeyword(module):
        raise UsageError(f"{name} is no name of a package: letters, digits and hyphens, such as my-noise")
    root = place / name
    if root.exists():
        raise UsageError(f"{root} is there already; choose another name")
    registered = module.replace("_", "-")
    entries = "\n".join(f'"{module}.{kind}" = "{module}.{kind}"' for kind in kinds)
    words = {
        "name": registered,
        "package": module,
        "version": __version__,
        "entries": entries,
        "kinds": ", ".join(kinds),
    }
    wanted = {
        root / "pyproject.toml": "pyproject.toml",
        root / "README.md": "README.md",
        root / module / "__init__.py": "__init__.py",
        **{root / module / f"{kind}.py": f"{kind}.py" for kind in kinds},
        **{root / "tests" / f"test_{kind}.py": f"test_{kind}.py" for kind in kinds},
    }
    for path, template in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_template(template).substitute(words), encoding="utf-8")
    return list(wanted)


def _template(name: str) -> Template:
    return Template((files("smoothctl.scaffold") / "templates" / f"{name}.txt").read_text(encoding="utf-8"))
