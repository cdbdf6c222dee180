"""Features of frozen video models, in stores that labs can share.

Names are imported when they are first used, so that `import obygaze_features` costs nothing.

Examples
--------
>>> import obygaze_features as of
>>> of.uniform(32).record()
{'policy': 'uniform', 'n': 32}
"""

from typing import Any

import lazy_loader

_public, _, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used (PEP 562)."""
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - slow, and needed here alone

        return version("obygaze")
    return _public(name)


def __dir__() -> list[str]:
    """List the public names."""
    return __all__
