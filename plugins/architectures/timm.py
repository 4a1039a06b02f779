"""Every network of timm, as ``timm/NAME``, without pretrained weights."""

from __future__ import annotations

from torch import nn

from smoothctl import Architecture, ModelSpec, UsageError, hookimpl


def build(spec: ModelSpec) -> nn.Module:
    """Create a timm model for these channels and classes, and this image size where it is fixed."""
    import timm  # takes seconds, and most runs use none of it

    if not timm.is_model(spec.name):
        close = timm.list_models(f"*{spec.name}*")[:5]
        hint = f"; timm has {', '.join(close)}" if close else ""
        raise UsageError(f"timm has no model {spec.name!r}{hint}")
    options = dict(spec.options)
    config = timm.get_pretrained_cfg(spec.name)
    if config is not None and config.fixed_input_size:
        options.setdefault("img_size", spec.input_shape[1:])
    return timm.create_model(
        spec.name, pretrained=False, num_classes=spec.num_classes, in_chans=spec.input_shape[0], **options
    )


@hookimpl
def register_architectures() -> list[Architecture]:
    return [Architecture("timm/", build, summary="any model of timm, such as timm/resnet18")]
