"""What tests need and collecting them does not: what takes seconds to import is imported at its first use."""

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest


class lazy_import:  # noqa: N801  it reads as an import
    """Stands for a module, or for what it defines, and imports it when it is used."""

    __slots__ = ("_module", "_name")
    _mock_name = None  # pytest asks for it, and for what has two underscores, of whatever it sees

    def __init__(self, module: str, name: str = "") -> None:
        object.__setattr__(self, "_module", module)
        object.__setattr__(self, "_name", name)

    @property
    def __dict__(self) -> Any:
        return vars(self._meant())

    def _meant(self) -> Any:
        module = import_module(self._module)
        return getattr(module, self._name) if self._name else module

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._meant(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._meant(), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._meant(), name)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._meant()(*arguments, **named)

    def __getitem__(self, key: Any) -> Any:
        return self._meant()[key]

    def __contains__(self, key: object) -> bool:
        return key in self._meant()

    def __or__(self, other: Any) -> Any:
        return self._meant() | (other._meant() if isinstance(other, lazy_import) else other)

    def __mro_entries__(self, _bases: Any) -> tuple[Any]:
        return (self._meant(),)

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, self._meant())


def needs(*packages: str) -> pytest.MarkDecorator:
    """Skip tests where a package is not installed, without importing it."""
    missing = [package for package in packages if find_spec(package) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


def cpu() -> Any:
    """Make the way to compute of most tests."""
    return import_module("obygaze_features.backbones.compute").Compute(device="cpu")


def without_gradients(test: Callable[..., Any]) -> Callable[..., Any]:
    """Run a test in PyTorch's inference mode."""

    @wraps(test)
    def run(*arguments: Any, **named: Any) -> Any:
        with import_module("torch").inference_mode():
            return test(*arguments, **named)

    return run
