"""A report put together: logs, their figures, comparisons, and the tables that show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from smoothctl.base import console
from smoothctl.base.errors import SmoothctlError, UsageError
from smoothctl.base.settings import keyword_settings
from smoothctl.records.run_directory import RunDirectory
from smoothctl.reporting import noises, sources
from smoothctl.reporting.frames import Frame
from smoothctl.reporting.gates import failures, parse
from smoothctl.reporting.measures import comparison, estimate, metrics, published, whatif
from smoothctl.reporting.measures.resolution import printing, undecided
from smoothctl.reporting.measures.summary import RHO, Summary, summarise
from smoothctl.reporting.settings import ReportSettings

if TYPE_CHECKING:
    from smoothctl.reporting.output.layout import Table


@dataclass(frozen=True)
class Report:
    """``frames`` are certification logs, what-ifs included, ``predicted`` the others; ``runs`` are training runs;
    ``said`` is what to warn of, ``noted`` what to know, and ``problems`` are logs that could not be read. ``full``
    computes the figures that take time."""

    frames: tuple[Frame, ...]
    predicted: tuple[Frame, ...]
    radii: tuple[float, ...]
    said: tuple[str, ...] = ()
    noted: tuple[str, ...] = ()
    rho: float = RHO
    against: tuple[str, ...] = ()
    full: bool = True
    runs: tuple[RunDirectory, ...] = ()
    problems: tuple[str, ...] = ()

    @cached_property
    def summaries(self) -> list[Summary]:
        return [summarise(frame, self.radii, self.rho, self.full) for frame in self.frames]

    @cached_property
    def predictions(self) -> list[Summary]:
        return [summarise(frame, (), self.rho, self.full) for frame in self.predicted]

    @cached_property
    def recorded(self) -> list[Frame]:
        """Certification logs as they are, without what-ifs."""
        return [frame for frame in self.frames if not frame.note]

    @cached_property
    def published(self) -> list[published.Published]:
        return published.matching(self.against, self.recorded) if self.against else []

    @cached_property
    def compared(self) -> tuple[list[comparison.Comparison], list[str]]:
        """Every further log against the first of its dataset and norm, and what cannot be compared."""
        return comparison.compare_all(self.recorded, self.radii)

    @cached_property
    def estimates(self) -> list[estimate.Estimate]:
        """What logs of some images at a large n would find on all, with the help of logs at a small n."""
        return estimate.estimates(self.recorded, self.radii)

    @cached_property
    def norms(self) -> dict[str, list[int]]:
        """The places of logs by the norm of their radii, which are never shown together."""
        found: dict[str, list[int]] = {}
        for place, frame in enumerate(self.frames):
            found.setdefault(frame.norm, []).append(place)
        return found

    def tables(self, *names: str) -> list[Table]:
        """The table of certified accuracy, and those of these names (`smoothctl plugins` lists them, or ``all``).

        Raises SmoothctlError for one that these logs cannot fill.
        """
        from smoothctl.reporting.output import parts

        found, unshown = parts.build(parts.chosen_tables(names), self, names)
        if unshown:
            raise SmoothctlError("; ".join(unshown))
        return found

    def draw(self, kind: str, path: Path | str) -> None:
        """Draw a plot (`smoothctl plugins` lists them) to a .png, .svg or .pdf file.

        Raises SmoothctlError for one that these logs cannot fill.
        """
        from smoothctl.reporting.output.drawing import save
        from smoothctl.reporting.output.parts import chosen_plot

        plot, file = chosen_plot(f"{kind}={path}")
        save(plot.draw(self), file)

    def write_page(
        self, directory: Path | str, data: Path | None = None, dataset: str | None = None, split: str | None = None
    ) -> Path:
        """Write ``index.html`` into a directory; ``data``, ``dataset`` and ``split`` say where its images are."""
        from smoothctl.reporting.output import page, pictures

        return page.write(self, Path(directory), data, pictures.Source(dataset, split) if dataset else None)

    def unmet(self, *requirements: str) -> list[str]:
        """What the logs do not meet of requirements such as ``acc@0.5>=0.6``; what-ifs are not held to any.

        Raises UsageError for what is no requirement, SmoothctlError if there is no log.
        """
        gates = [parse(text) for text in requirements]
        logs = [*self.recorded, *self.predicted]
        missing = sources.without_log(self.runs, logs) if gates else []
        if gates and not logs and not missing:
            raise SmoothctlError("there is no log to hold against the requirements")
        return failures(gates, self.recorded or logs, self.rho, missing)

    def envelopes(self) -> list[tuple[str, tuple[comparison.EnvelopePoint, ...]]]:
        """The envelope of each group of logs that has several."""
        found = []
        for norm in self.norms:
            same = [frame for frame in self.recorded if frame.norm == norm]
            for group, frames in comparison.groups(same).items():
                if len(frames) > 1:
                    what = " ".join(
                        [*(part for part in group if part), *([norm.upper()] if len(self.norms) > 1 else [])]
                    )
                    title = f"Best of {len(frames)} runs per radius{': ' + what if what else ''} (%)"
                    found.append((title, comparison.envelope(frames, self.radii)))
        return found


@keyword_settings
def report(paths: Path | str | Sequence[Path | str], settings: ReportSettings, full: bool = True) -> Report:
    """What the logs and runs at these places tell: files, run directories, or folders of them.

    It warns of what makes figures doubtful. Raises UsageError for settings that fit no log, and SmoothctlError if
    there is no log and no run; a log that cannot be read is among ``Report.problems``.
    """
    places = [Path(path) for path in ([paths] if isinstance(paths, (str, Path)) else paths)]
    changes = [whatif.parse(text) for text in settings.what_if]
    published.check(settings.against)
    frames, problems = sources.read_logs(sources.find_logs(places))
    runs = sources.find_runs(places)
    for run in runs if not frames else ():
        console.note(f"{run.path} has no log yet; make one with: smoothctl certify {run.path}")
    found = assemble(
        frames, settings.radii, common_idx=settings.common_idx, what_if=changes, against=settings.against,
        rho=settings.rho, full=full, runs=runs,
    )  # fmt: skip
    for line in (*found.said, *problems):
        console.warn(line)
    for line in found.noted:
        console.note(line)
    return replace(found, problems=tuple(problems))


def assemble(
    frames: Sequence[Frame],
    radii: Sequence[float] = (),
    *,
    common_idx: bool = False,
    what_if: Sequence[tuple[str, str]] = (),
    against: Sequence[str] = (),
    rho: float = RHO,
    full: bool = True,
    runs: Sequence[RunDirectory] = (),
) -> Report:
    """Infer what logs leave out, add what-ifs, choose radii, and gather what must be said."""
    if common_idx and frames:
        frames = sources.common_images(frames)
    frames, noted = sources.detected(frames)
    said = sources.cautions(frames)
    certified = [frame for frame in frames if frame.kind == "certify"]
    predicted = [frame for frame in frames if frame.kind == "predict"]
    certified = [frame for group in comparison.groups(certified).values() for frame in group]
    grid = tuple(radii) or metrics.default_radii(certified)
    shown, impossible = _with_changes(certified, what_if)
    said += impossible
    said += other_radii(certified, grid)
    noted += [f"{frame.name}: no ACR: {metrics.NO_ACR}" for frame in certified if frame.grid is not None]
    noted += [f"{frame.name}: {told}" for frame in certified if (told := noises.converted(frame))]
    said += [line for frame in certified if (line := _undecided(frame, grid))]
    return Report(
        tuple(shown), tuple(predicted), grid, tuple(said), tuple(noted), rho, tuple(against), full, tuple(runs)
    )


def _with_changes(frames: Sequence[Frame], changes: Sequence[tuple[str, str]]) -> tuple[list[Frame], list[str]]:
    """Each log and its what-ifs, and why there are none of some; raises UsageError if none is possible."""
    shown, impossible = [], []
    for frame in frames:
        shown.append(frame)
        for kind, value in changes:
            try:
                shown.append(whatif.apply(frame, kind, value))
            except UsageError as error:
                impossible.append(f"no what-if {kind}={value}: {error}")
    if impossible and len(shown) == len(frames):
        raise UsageError(impossible[0])
    return shown, impossible


def other_radii(frames: Sequence[Frame], radii: Sequence[float]) -> list[str]:
    """Radii that a stopping rule was not asked about, which are rounded down to those that it was."""
    found = []
    for frame in frames:
        grid = list(frame.grid or ())
        others = [radius for radius in radii if grid and min(abs(radius - known) for known in grid) > 1e-12]
        if others:
            listed = ", ".join(f"{radius:g}" for radius in others)
            found.append(f"{frame.name}: it was made for the radii {grid}; at {listed} its accuracy is a lower bound")
    return found


def _undecided(frame: Frame, radii: Sequence[float]) -> str | None:
    counts = undecided(frame, radii)
    if not any(counts):
        return None
    listed = ", ".join(f"{count} at r={radius:g}" for count, radius in zip(counts, radii, strict=True) if count)
    return f"{frame.name}: radii are printed with {printing(frame.radius)}, which leaves rows undecided: {listed}"
