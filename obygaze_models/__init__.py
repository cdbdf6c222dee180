"""The zoo: small models on stored features, evaluated one movie left out at a time. CPU only.

Names are imported when they are first used, so that `import obygaze_models` costs nothing.

Examples
--------
>>> import obygaze_models as om
>>> om.linear_probe(C=0.01).named_steps["ridgelogistic"].C
0.01
"""

from typing import Any

import lazy_loader

_import_public, _, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used (PEP 562)."""
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - slow, and needed here alone

        return version("obygaze")
    return _import_public(name)


def __dir__() -> list[str]:
    """List the public names."""
    return __all__
