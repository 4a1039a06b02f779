"""Model files of our own from third-party ones, several models as one, and files for other runtimes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from smoothctl.base import console
from smoothctl.base.errors import UsageError
from smoothctl.base.settings import keyword_settings
from smoothctl.hooks.registry import registry
from smoothctl.images.datasets import default_split, open_dataset
from smoothctl.images.settings import DataSource
from smoothctl.models.checkpoint import Model, load_model, save_model
from smoothctl.models.composition import combine, denoised
from smoothctl.models.exporting import export_model
from smoothctl.models.import_checkpoint import assumptions
from smoothctl.models.settings import EXPORTED, ConvertSettings, ModelSource

ENDINGS = (".pt", ".safetensors", *EXPORTED)


@keyword_settings
def convert(
    old: Sequence[Path | str], new: Path | str, settings: ConvertSettings, given: ModelSource, source: DataSource
) -> Model:
    """Write a model file of our own, or one for another runtime; several become one ensemble; return what was written.

    Raises UsageError for what nothing decides, and where a file would be replaced, and SmoothctlError for files
    that do not fit.
    """
    olds, target = [Path(path) for path in old], Path(new)
    _check_places(olds, target, settings.overwrite)
    if len(olds) == 1:
        whole = _load(olds[0], settings, given, source)
    else:  # the options are those of the ensemble
        each = given.model_copy(update={"arch_options": {}})
        whole = combine([_load(path, settings, each, source) for path in olds], given.arch_options)
    model = replace(denoised(whole, given.denoiser, settings.sigma), path=target)
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.suffix in EXPORTED:
        difference = export_model(model, target)
        console.note(f"{target} agrees with PyTorch: logits differ by at most {difference:.1g} (batches of 1 to 40)")
    else:
        save_model(target, model.info, model.classifier.network.state_dict())
    return model


def _check_places(old: Sequence[Path], new: Path, overwrite: bool) -> None:
    if not old:
        raise UsageError("give both the files: smoothctl convert OLD NEW")
    if new.suffix not in ENDINGS:
        raise UsageError(f"NEW is the last file and ends in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}, not {new.name}")
    if new.resolve() in [path.resolve() for path in old]:
        raise UsageError(f"{new} is the file to be converted; choose another for what is written")
    if new.exists() and not overwrite:
        raise UsageError(f"{new} is there already; choose another file, or `overwrite`")


def _load(path: Path, settings: ConvertSettings, given: ModelSource, source: DataSource) -> Model:
    """Load one file; raises UsageError if nobody says for which sigma it was trained."""
    assumed = assumptions(given, settings.dataset, sigma=settings.sigma, noise=settings.noise)
    if assumed.noise is not None:
        registry().find("noise", assumed.noise)
    if assumed.dataset is not None and source.data is not None:
        split = default_split(assumed.dataset)
        assumed = replace(
            assumed, dataset=open_dataset(assumed.dataset, split, source.data, source.download, size=given.size)[0]
        )
    model = load_model(path, given=assumed)
    if assumed.sigma not in (None, model.info.sigma) and given.denoiser is None:
        raise UsageError(f"{path} says that it was trained for sigma {model.info.sigma:g}; leave `sigma` out")
    if assumed.dataset is not None and model.info.dataset != assumed.dataset.name:
        raise UsageError(f"{path} says that it is for {model.info.dataset}; leave `dataset` out")
    if model.info.sigma is None:
        raise UsageError(f"{path} does not say for which sigma it was trained; give `sigma` (0: without noise)")
    return model
