"""Procedures of certification from keywords, as tests and benchmarks write them."""

from __future__ import annotations

from smoothctl.base.settings import validated
from smoothctl.hooks.noises import Noise
from smoothctl.smoothing.procedure import Procedure, RuleMaker, resolve
from smoothctl.smoothing.settings import CertifySettings


def procedure(**values: object) -> Procedure:
    """The procedure of settings and options of rules."""
    own = {name: value for name, value in values.items() if name in CertifySettings.model_fields}
    return resolve(validated(CertifySettings, own), {name: values[name] for name in values if name not in own})


def begin(noise: Noise, sigma: float, **values: object) -> RuleMaker:
    """From an image's label to a fresh rule of such a procedure."""
    return procedure(**values).begin(noise, sigma)
