"""A figure as SVG inside a page: it takes the page's colours and fonts, and tells what it shows."""

from __future__ import annotations

import io
import re
from html import escape

import matplotlib as mpl
from matplotlib.figure import Figure

from smoothctl.reporting.output.drawing import COLOURS, GREY

SIZE = (5.0, 3.6)


def inline_svg(figure: Figure, name: str, title: str, description: str) -> str:
    """Turn a figure into one ``<svg>`` element whose ids begin with ``name``.

    Text stays text, black becomes the page's text colour, and series take the page's ``--series-N``.
    """
    text = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        # Smaller than on paper, so that the text can be read at the width of a phone.
        figure.set_size_inches(*SIZE)
        figure.patch.set_alpha(0)
        for axes in figure.axes:
            axes.patch.set_alpha(0)
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = _recolour(_own_ids(svg, name))
    view = re.search(r'viewBox="[^"]*"', svg)
    assert view is not None
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" {view.group()} role="img" '
        f'aria-labelledby="{name}-title {name}-description">'
        f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-description">{escape(description)}</desc>'
    )
    return re.sub(r"^<svg[^>]*>", lambda _: opening, svg, count=1, flags=re.DOTALL)


def _own_ids(svg: str, name: str) -> str:
    """Begin every id with ``name``, so that several figures do not share any."""
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'href="#', f'href="#{name}-', svg)
    return svg.replace("url(#", f"url(#{name}-")


def _recolour(svg: str) -> str:
    for place, colour in enumerate(COLOURS):
        svg = re.sub(re.escape(colour), f"var(--series-{place})", svg, flags=re.IGNORECASE)
    svg = re.sub(re.escape(GREY), "var(--series-grey)", svg, flags=re.IGNORECASE)
    svg = re.sub(r"#000000\b|#000\b", "currentColor", svg)
    # Text has no fill of its own in matplotlib's files, and would be black on a dark page.
    return re.sub(r'<text style="', '<text style="fill: currentColor; ', svg).replace("'DejaVu Sans', ", "")
