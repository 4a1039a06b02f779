"""HTML from Jinja2 templates; every text is escaped unless it says that it is HTML."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

PLACE = resources.files("smoothctl.reporting.output")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(lambda name: (PLACE / "html" / name).read_text(encoding="utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["style"] = Markup((PLACE / "page.css").read_text(encoding="utf-8"))
    return environment


def render(name: str, **values: Any) -> str:
    """Fill a template in."""
    return _environment().get_template(name).render(**values)


def markup(html: str) -> Markup:
    """What is HTML already."""
    return Markup(html)
