"""The work that fills a log: alone, as one of torchrun's workers, or as one shard of several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from smoothctl.base import console, files
from smoothctl.base.draws import Draws
from smoothctl.base.errors import UsageError
from smoothctl.base.peers import TIMEOUT
from smoothctl.base.streams import Stream
from smoothctl.evaluation.plan import Job
from smoothctl.evaluation.workers import Workers, join_workers
from smoothctl.hooks.noises import ABSTAIN
from smoothctl.hooks.registry import registry
from smoothctl.hooks.rules import Certificate
from smoothctl.hooks.trackers import Event
from smoothctl.images.datasets import Reading
from smoothctl.records.log import CERTIFY_COLUMNS, PREDICT_COLUMNS, Log, format_votes, read_log
from smoothctl.records.shards import Shard
from smoothctl.records.writer import Writer, note_stop, open_log, part_path, read_settings
from smoothctl.smoothing.predict import Prediction
from smoothctl.smoothing.rules import rule_options
from smoothctl.smoothing.sampling import Decided

DRAWN_AGAIN = ("seed", "n", "n0", "bound", "rule")
"""Settings, beside the options of stopping rules, that give another draw of the same images' votes."""


class Question(Protocol):
    """What the images are to decide; it is told of each, and says when it knows."""

    @property
    def decided(self) -> bool: ...

    def add(self, correct: bool, radius: float) -> None: ...

    def describe(self) -> str: ...


def run(
    job: Job,
    path: Path,
    overwrite: bool = False,
    shard: Shard | None = None,
    question: Question | None = None,
    timeout: float = TIMEOUT,
) -> Log | None:
    """Decide every image that is not on record in the log yet; return the whole log.

    With a ``question``, images are taken in a random order, that of the seed, until it is decided, by one process.
    Under torchrun the workers share the images out, and wait for each other ``timeout`` seconds at most; only the
    first returns the log, the others None. Raises UsageError if the log was made with other settings.
    """
    columns = CERTIFY_COLUMNS if _certifying(job) else PREDICT_COLUMNS
    workers = join_workers(timeout)
    if question is not None and (workers is not None or shard is not None):
        raise UsageError("a requirement is decided by one process, without shards and torchrun")
    if workers is not None and not workers.leads:
        _help(job, path, columns, workers)
        return None
    try:
        indices = shard.of(job.indices) if shard else list(job.indices)
        about = job.about() if shard is None else {**job.about(), "shard": str(shard), "whole": len(job.indices)}
        if overwrite:
            _warn_of_another_draw(job, path)
        with open_log(path, columns, job.identity(), about, indices, overwrite) as log:
            if question is None:
                _lead(job, log, indices, workers)
            else:
                _ask(job, log, indices, question)
            stopped = question is not None and len(log.on_record()) < len(indices)
            note_stop(path, question.describe() if question is not None and stopped else None)
    except Exception as error:
        if workers is not None:
            workers.announce_failure(error)
        raise
    return read_log(path, allow_empty=shard is not None)


def _warn_of_another_draw(job: Job, path: Path) -> None:
    """Say that alpha is spent per draw, where a log of the same model is replaced by one with other noise or votes."""
    there, here = (read_settings(path) or {}).get("settings", {}), job.identity()
    names = (*DRAWN_AGAIN, *rule_options().model_fields)
    changed = [name for name in names if name in there and there[name] != here.get(name)]
    if changed and there.get("model") == here["model"] and read_log(path, allow_empty=True).rows:
        console.warn(
            f"{path} is replaced by one with another {' and '.join(changed)}: certifying these images again spends "
            "alpha again, so a result that is kept because it is the better one holds with less than 1-alpha"
        )


def _lead(job: Job, log: Writer, indices: Sequence[int], workers: Workers | None) -> None:
    """Do the images that are missing, alone or with the workers, and put everything into the log."""
    done = log.done | log.absorb()
    todo = [index for index in indices if index not in done]
    if workers is not None:
        workers.announce(todo)
        workers.todo()
    log.note_progress(len(done), len(indices))
    if not todo:
        return
    if workers is None:
        _fill(job, log, todo, todo, quiet=False)
        return
    _fill(job, log, workers.hand_out(todo), todo, quiet=False)
    workers.wait_for_others()
    log.absorb()
    if left := sorted(set(todo) - log.on_record()):
        console.note(f"doing the {len(left)} images that workers left unfinished")
        _fill(job, log, left, left, quiet=False)


def _ask(job: Job, log: Writer, indices: Sequence[int], question: Question) -> None:
    """Do images in the order of the seed until they decide the question; those on record count first."""
    done = log.done | log.absorb()
    for row in read_log(log.path, allow_empty=True).rows:
        question.add(row.correct, row.radius or 0.0)
    if question.decided:
        console.note(f"{log.path}: {question.describe()}; nothing to do")
        return
    log.note_progress(len(done), len(indices))
    order = Draws(job.settings.seed, 0, Stream.IMAGE_ORDER).permutation(len(indices)).tolist()
    todo = [indices[place] for place in order if indices[place] not in done]
    _fill(job, log, todo, todo, quiet=False, question=question)
    console.note(question.describe())


def _help(job: Job, path: Path, columns: tuple[str, ...], workers: Workers) -> None:
    """Work as one of torchrun's other workers, into a part file of its own."""
    todo = workers.todo()
    if not todo:
        return
    part = part_path(path, workers.rank)
    with files.exclusive(part):
        log = Writer(part, columns, frozenset())
        part.touch()
        _fill(job, log, workers.hand_out(todo), todo, quiet=True)
        workers.finish()


def _certifying(job: Job) -> bool:
    return job.procedure.certifies


def _fill(
    job: Job,
    log: Writer,
    indices: Iterable[int],
    todo: Sequence[int],
    quiet: bool,
    question: Question | None = None,
) -> None:
    what = "certify" if _certifying(job) else "predict"
    plugins = registry()
    plugins.notify(Event(f"{what}.start", log.path, job.identity()))
    failures: list[int] = []
    under_way: dict[int, Reading] = {}
    done = 0

    def failed(index: int, reason: str) -> None:
        failures.append(index)
        console.warn(f"image {index}: {reason}")
        log.append(**_failed_cells(index, reason))
        if question is not None:
            question.add(False, 0.0)

    def images() -> Iterator[tuple[int, Tensor]]:
        for reading in job.readable(indices, failed):
            under_way[reading.index] = reading
            yield reading.index, reading.x

    expected = float(len(todo) * job.procedure.likely_samples)
    drawn = 0
    with console.progress(what, round(expected), quiet) as advance:
        sampler = job.sampler(lambda samples: advance(samples, f"{done}/{len(todo)} images", expected))
        for decided in sampler.run(images(), lambda index: job.rule(under_way[index].label)):
            drawn += _samples(decided.outcome)
            cells = _cells(under_way.pop(decided.index), decided)
            log.append(**cells)
            done += 1
            if not job.procedure.fixed_n:
                expected = drawn / done * len(todo)  # what images took so far
            plugins.notify(Event(f"{what}.image", log.path, cells))
            if question is not None:
                question.add(bool(cells["correct"]), cells["radius"])
                if question.decided:
                    break
    plugins.notify(Event(f"{what}.end", log.path, {"decided": done, "failed": len(failures)}))


def _samples(outcome: Certificate | Prediction) -> int:
    """Noise samples that an image took."""
    selection = int(outcome.selection.sum()) if isinstance(outcome, Certificate) else 0
    return int(outcome.votes.sum()) + selection


def _cells(reading: Reading, decided: Decided[Any]) -> Mapping[str, Any]:
    outcome: Certificate | Prediction = decided.outcome
    label = reading.label
    cells = {
        "idx": decided.index,
        "label": label,
        "predict": outcome.predict,
        "correct": int(outcome.predict == label),
        "time": f"{decided.seconds:.4f}",
        "top": outcome.top,
        "n": outcome.n,
        "votes": format_votes(outcome.votes),
        "image": reading.name,
        "status": "ok",
    }
    if isinstance(outcome, Certificate):
        return {
            **cells,
            "radius": outcome.radius,
            "p_lower": outcome.p_lower,
            "selection": format_votes(outcome.selection),
            "verdict": outcome.verdict,
        }
    return {**cells, "p_value": outcome.p_value}


def _failed_cells(index: int, reason: str) -> Mapping[str, Any]:
    """A failed image counts as wrong for whoever reads the field's own columns; ``status`` says why."""
    nothing = dict.fromkeys(("votes", "selection", "image", "verdict"), "")
    numbers = dict.fromkeys(("time", "radius", "p_lower", "p_value"), 0.0)
    return {
        "idx": index, "label": -1, "predict": ABSTAIN, "correct": 0, "top": -1, "n": 0,
        **nothing, **numbers, "status": reason,
    }  # fmt: skip
