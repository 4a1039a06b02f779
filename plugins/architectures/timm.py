"""Every network of timm, as ``timm/NAME``, without pretrained weights unless they are asked for."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterator

from torch import nn

from smoothctl import Architecture, ModelSpec, SmoothctlError, UsageError, hookimpl

SECONDS_TO_ANSWER = 10


def build(spec: ModelSpec) -> nn.Module:
    """Create a timm model for these channels and classes, and this image size where it is fixed.

    Raises SmoothctlError if pretrained weights are asked for and can't be had.
    """
    import timm  # takes seconds, and most runs use none of it

    if not timm.is_model(spec.name):
        close = timm.list_models(f"*{spec.name}*")[:5] or difflib.get_close_matches(spec.name, timm.list_models())
        hint = f"; timm has {', '.join(close)}" if close else ""
        raise UsageError(f"timm has no model {spec.name!r}{hint}")
    options = dict(spec.options)
    pretrained = options.pop("pretrained", False)
    config = timm.get_pretrained_cfg(spec.name)
    if config is not None and config.fixed_input_size:
        options.setdefault("img_size", spec.input_shape[1:])
    options |= {"num_classes": spec.num_classes, "in_chans": spec.input_shape[0]}
    if not pretrained:
        return _whole_patches(timm.create_model(spec.name, pretrained=False, **options), spec)
    try:
        with _hub():
            network = timm.create_model(spec.name, pretrained=True, **options)
    except Exception as error:  # hub clients raise whatever they like without a network
        raise SmoothctlError(
            f"pretrained weights of timm/{spec.name} cannot be had ({type(error).__name__}: "
            f"{' '.join(str(error).split())[:160]}); without a network, put them into the hub's cache, or leave "
            "pretrained out"
        ) from None
    return _whole_patches(network, spec)


def _whole_patches(network: nn.Module, spec: ModelSpec) -> nn.Module:
    """Refuse a network that would cut off what its patches leave over of an image."""
    from timm.layers.patch_embed import PatchEmbed

    first = next((module for module in network.modules() if isinstance(module, PatchEmbed)), None)
    if first is None or first.dynamic_img_pad:
        return network
    (height, width), (tall, wide) = spec.input_shape[1:], first.patch_size
    if height % tall or width % wide:
        raise UsageError(
            f"timm/{spec.name} cuts images into patches of {tall}x{wide}, of which {height}x{width} is no multiple, so "
            "that it would not see all of them; try --arch-option patch_size=4"
        )
    return network


@contextlib.contextmanager
def _hub() -> Iterator[None]:
    """Keep the hub's client to its cache if the hub does not answer, as it would try again for most of a minute."""
    from huggingface_hub import constants, get_session

    before = constants.HF_HUB_OFFLINE
    try:
        get_session().head(constants.ENDPOINT, timeout=SECONDS_TO_ANSWER)
    except Exception:  # whatever its transport raises
        constants.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before


@hookimpl
def register_architectures() -> list[Architecture]:
    return [
        Architecture(
            "timm/",
            build,
            summary="any model of timm, such as timm/resnet18",
            options=None,
            initial_options=("pretrained",),
            dataset="imagenet",
            example="mobilenetv3_small_050",
        )
    ]
