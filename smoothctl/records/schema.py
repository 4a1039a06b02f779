"""What the JSON beside logs and in run directories may hold: it is checked once, where it is read."""

from __future__ import annotations

from typing import Annotated, Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from smoothctl.base.errors import SmoothctlError
from smoothctl.hooks.rules import NFrom

LARGEST_COUNT = 10**12
Text = Annotated[str, Field(max_length=10_000)]
Whole = Annotated[int, Field(ge=0, le=LARGEST_COUNT)]
Positive = Annotated[float, Field(gt=0, le=1e9)]
Distance = Annotated[float, Field(ge=0, le=1e9)]
GRID = TypeAdapter(list[Distance], config=ConfigDict(strict=True, allow_inf_nan=False))
Seconds = Annotated[float, Field(ge=0, le=1e12)]


class Record(BaseModel):
    """Plain data that is known by name; other entries are kept as they are."""

    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False, protected_namespaces=())


class LogSettings(Record):
    """Settings that decide the rows of a log."""

    dataset: Text | None = None
    split: Text | None = None
    data: Text | None = None
    transform: Text | None = None
    model: Text | None = None
    noise: Text | None = None
    norm: Text | None = None
    sigma: Positive | None = None
    rule: Text | None = None
    bound: Text | None = None
    n0: Whole | None = None
    n: Annotated[int, Field(ge=1, le=LARGEST_COUNT)] | None = None
    alpha: Annotated[float, Field(ge=0, lt=1)] | None = None
    radii: list[Distance] | None = None
    skip_misclassified: bool | None = None
    precision: Text | None = None
    backend: Text | None = None


class ModelDescription(Record):
    """What a log says of the model that it is about."""

    arch: Text | None = None
    method: Text | None = None
    method_options: dict[str, Any] | None = None
    dataset: Text | None = None
    epochs: Whole | None = None
    lineage: list[dict[str, Any]] | None = None


class TellsRecord(BaseModel):
    """What the rows of a log's stopping rule tell."""

    model_config = ConfigDict(extra="forbid", strict=True)

    n_from: NFrom
    grid: Text


class About(Record):
    """What a log records that does not decide its rows."""

    model: ModelDescription = ModelDescription()
    class_names: list[Text] = []
    shard: Text | None = None
    whole: Whole | None = None
    stopped: Text | None = None
    distance: Annotated[float, Field(ge=0, le=1)] = 0.0
    tells: TellsRecord | None = None


class Sidecar(Record):
    """The JSON file beside a log."""

    settings: LogSettings = LogSettings()
    planned: Whole | None = None
    about: About = About()

    @model_validator(mode="after")
    def _grid_is_a_list_of_radii(self) -> Self:
        """The setting that the log itself names as its grid holds radii, whoever's rule it belongs to."""
        grid = self.about.tells.grid if self.about.tells else ""
        value = getattr(self.settings, grid, None) if grid else None
        if value is not None:
            try:
                GRID.validate_python(value)
            except ValidationError:
                raise ValueError(f"settings.{grid}, the radii that rows are about, is no list of radii") from None
        return self


class CostRecord(BaseModel):
    """What a training run cost."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    epochs: Whole
    seconds: Seconds
    forward_passes: Whole
    backward_passes: Whole
    teacher_passes: Whole


class LinkRecord(BaseModel):
    """One run of a lineage."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    arch: Text
    method: Text
    sha256: Text
    cost: CostRecord | None = None
    generation: Whole = 0


class RunSettings(Record):
    """Settings that decide the weights of a run."""

    method: Text
    arch: Text
    dataset: Text
    epochs: Annotated[int, Field(ge=1, le=10**9)]
    sigma: Annotated[float, Field(ge=0, le=1e9)] | None = None


class RunAbout(Record):
    """What a run records that does not decide its weights."""

    lineage: list[LinkRecord] | None = None


class RunFile(Record):
    """``settings.json`` of a run directory."""

    format: int
    settings: RunSettings
    about: RunAbout
    finished: Text | None


class Epoch(Record):
    """One line of ``epochs.jsonl``; a loss may have become nan."""

    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=True)

    epoch: Whole
    seconds: Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]
    loss: float | None = None
    heldout_accuracy: float | None = None
    forward_passes: Whole = 0
    backward_passes: Whole = 0
    teacher_passes: Whole = 0


T = TypeVar("T", bound=BaseModel)


def checked(model: type[T], value: object, where: str) -> T:
    """``value`` as a record; raises SmoothctlError, a line that names the first entry that does not fit."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        entry = ".".join(map(str, first["loc"])) or "the whole"
        message = first["msg"][:1].lower() + first["msg"][1:]
        raise SmoothctlError(f"{where} is damaged: {entry}: {message} (it is {_short(first['input'])})") from None


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
