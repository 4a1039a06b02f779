"""Every network of timm, as ``timm/NAME``, without pretrained weights unless they are asked for."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from torch import nn

from smoothctl import Architecture, ModelSpec, SmoothctlError, UsageError, did_you_mean, hookimpl, say_once

SECONDS_TO_ANSWER = 5

# timm reads the files and addresses that these name, and older versions run the code in them.
READING = ("checkpoint_path", "pretrained_cfg", "pretrained_cfg_overlay", "cache_dir", "pretrained_strict")

# Plain settings that a model file may hold: rates, sizes and switches of timm's models.
PLAIN = (
    *("drop_rate", "drop_path_rate", "drop_block_rate", "attn_drop_rate", "proj_drop_rate", "pos_drop_rate"),
    *("global_pool", "output_stride", "img_size", "patch_size", "window_size", "embed_dim", "depth", "depths", "dims"),
    *("num_heads", "mlp_ratio", "qkv_bias", "class_token", "reg_tokens", "init_values", "act_layer", "norm_layer"),
    *("stem_width", "stem_type", "base_width", "cardinality", "avg_down", "channel_multiplier", "width", "growth_rate"),
    *("always_partition", "strict_img_size", "dynamic_img_size", "fix_stem", "zero_init_last"),
)


def build(spec: ModelSpec) -> nn.Module:
    """Create a timm model for these channels and classes, and this image size where it is fixed.

    Raises UsageError for an option by which timm would read another file, and SmoothctlError if pretrained weights
    are asked for and can't be had.
    """
    import timm  # takes seconds, and most runs use none of it

    if reading := [name for name in READING if name in spec.options]:
        raise UsageError(
            f"`arch_options={reading[0]}`: timm would read a file by itself, which could run code; a checkpoint is "
            f"read by certify, predict and convert, with `arch=timm/{spec.name}`"
        )

    if not timm.is_model(spec.name):
        close = timm.list_models(f"*{spec.name}*")[:5]
        hint = f"; timm has {', '.join(close)}" if close else f" {did_you_mean(spec.name, timm.list_models())}".rstrip()
        raise UsageError(f"timm has no model {spec.name!r}{hint}")
    if not (module := timm.models.model_entrypoint(spec.name).__module__).startswith("timm."):
        say_once(f"timm/{spec.name} is not timm's own: {module} registered it there")
    options = dict(spec.options)
    pretrained = options.pop("pretrained", False)
    config = timm.get_pretrained_cfg(spec.name)
    if config is not None and config.fixed_input_size:
        options.setdefault("img_size", spec.input_shape[1:])
    options |= {"num_classes": spec.num_classes, "in_chans": spec.input_shape[0]}
    make = partial(timm.create_model, spec.name, **options)
    network = _with_weights(make, spec.name, config) if pretrained else make(pretrained=False)
    return _whole_patches(network, spec)


def _with_weights(make: Callable[..., nn.Module], name: str, config: Any) -> nn.Module:
    """A network with timm's weights, from the cache, or else from the hub if that answers.

    Raises SmoothctlError, with what to put where, if they cannot be had.
    """
    from huggingface_hub import constants

    repository = getattr(config, "hf_hub_id", None)
    if not repository:
        raise UsageError(f"timm has no pretrained weights of {name} on its hub; leave pretrained out")
    try:
        with _hub(offline=True):
            return make(pretrained=True)
    except Exception:  # hub clients raise whatever they like for what is not in their cache
        answer = _ask_hub(f"{constants.ENDPOINT}/{repository}/resolve/main/config.json")
    if not answer:
        try:
            with _hub(offline=False):
                return make(pretrained=True)
        except Exception as error:
            answer = f"{type(error).__name__}: {' '.join(str(error).split())[:100]}"
    folder = f"models--{repository.replace('/', '--')}"
    raise SmoothctlError(
        f"pretrained weights of timm/{name} cannot be had ({answer}); without a network, say `hf download {repository}`"
        f" where there is one and copy the folder {folder} into {constants.HF_HUB_CACHE}, or leave pretrained out"
    )


def _ask_hub(address: str) -> str:
    """Why the hub does not answer, within seconds, as its client would try again for most of a minute; else empty."""
    from huggingface_hub import get_session

    try:
        status = get_session().head(address, timeout=SECONDS_TO_ANSWER).status_code
    except Exception as error:  # whatever its transport raises
        return f"{type(error).__name__}: {' '.join(str(error).split())[:100]}"
    return "" if status < 400 else f"{address} answers {status}"


@contextlib.contextmanager
def _hub(offline: bool) -> Iterator[None]:
    """Keep the hub's client to its cache, or let it out."""
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = offline or before
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before


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
            "that it would not see all of them; try `arch_options=patch_size=4`"
        )
    return network


@hookimpl
def register_architectures() -> list[Architecture]:
    return [
        Architecture(
            "timm/",
            build,
            summary="any model of timm, such as timm/resnet18",
            options=None,
            initial_options=("pretrained",),
            file_options=PLAIN,
            dataset="imagenet",
            example="mobilenetv3_small_050",
        )
    ]
