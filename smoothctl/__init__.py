"""smoothctl: train, transfer, certify and report provably robust image classifiers.

``__init__.pyi`` lists the names that plugins and programs need. Each is imported when it is first used, so
that ``import smoothctl`` costs next to nothing.
"""

import lazy_loader

from smoothctl.base.about import __version__

__getattr__, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = ["__version__", *_names]  # noqa: PLE0604 - they are names
