"""Tables of several logs beside each other: the best of them at each radius, differences with the first, and what
a large n would find on all images."""

from __future__ import annotations

from collections.abc import Sequence

from smoothctl.reporting.measures.comparison import Comparison, Difference, EnvelopePoint
from smoothctl.reporting.measures.estimate import Estimate, Estimated
from smoothctl.reporting.output.cells import ACR, percent, radius_columns, radius_name
from smoothctl.reporting.output.layout import Cell, Table, figures, words


def envelope(title: str, points: Sequence[EnvelopePoint]) -> Table:
    """Best certified accuracy per radius, with the clean accuracy of the model that gives it."""
    rows = [
        [Cell(radius_name(point.radius)), percent(point.accuracy), percent(point.clean), Cell(point.name)]
        for point in points
    ]
    note = "Each radius is the best of several models, chosen after seeing these images: no one model has all of it."
    columns = [words("radius"), figures("best"), figures("its clean"), words("run")]
    return Table(title, columns, rows, note=note, name="envelope")


def comparisons(compared: Sequence[Comparison], radii: Sequence[float], failures: Sequence[str] = ()) -> Table:
    """Differences in percentage points, with intervals and p-values."""
    rows = []
    for each in compared:
        name = f"{each.second} - {each.first}"
        cells = [_difference(part, 100, 2) for part in each.certified]
        acr = Cell("-") if each.acr is None else _difference(each.acr, 1, 4)
        rows.append([Cell(name), Cell(f"{each.images}"), Cell(each.subset), *cells, acr])
    note = (
        "difference [95 % interval] p-value, adjusted for all tests of this table together (Holm). On shared images: "
        "certified accuracy by McNemar's exact test and Agresti and Min's interval, ACR by a paired t-test and a "
        "bootstrap; on different images by Agresti and Caffo's test, Newcombe's interval, and Welch's t-test."
    )
    if failures:
        note = f"{note} Not compared: {'; '.join(failures)}."
    columns = [
        words("second - first"), figures("images", 5), words("idx", 9, ""), *radius_columns(radii), ACR
    ]  # fmt: skip
    return Table("Differences", columns, rows, note=note, name="differences")


def _difference(part: Difference, scale: float, digits: int) -> Cell:
    low, high = scale * part.low, scale * part.high
    return Cell(
        f"{scale * part.difference:+.{digits}f} [{low:+.{digits}f}, {high:+.{digits}f}] p={part.adjusted:.2g}",
        part.difference,
    )


def estimated(found: Sequence[Estimate], radii: Sequence[float]) -> Table:
    """Certified accuracy and ACR of all images at the larger n, each with its interval."""
    rows = []
    for each in found:
        cells = [_with_interval(part, 100, 2) for part in each.certified]
        acr = Cell("-") if each.acr is None else _with_interval(each.acr, 1, 4)
        saved = Cell("-") if each.saving is None else Cell(f"{each.saving:.1f} times", each.saving)
        rows.append([Cell(each.full), Cell(each.cheap), Cell(f"{each.measured}/{each.images}"), saved, *cells, acr])
    note = (
        "An ESTIMATE [95 % interval over which images were measured], not a certificate: what the first log's settings "
        "would find on all images of the second, taking the first log's images for a random sample of these."
    )
    columns = [
        words("estimate of"), words("with the help of"), figures("measured", 5), figures("fewer samples", 8, ""),
        *radius_columns(radii), ACR,
    ]  # fmt: skip
    return Table("Estimated for all images (%)", columns, rows, note=note, name="estimate")


def _with_interval(part: Estimated, scale: float, digits: int) -> Cell:
    low, high = scale * part.low, scale * part.high
    return Cell(f"{scale * part.value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]", part.value)
