"""Re-train a backbone: the LSMDC X-CLIP from a CLIP (Ma et al., ACM MM 2022)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from obygaze_features.train.plan import Plan, Settings, make_plan
    from obygaze_features.train.run import train
    from obygaze_features.train.watch import Outcome, Watch

__all__ = ["Outcome", "Plan", "Settings", "Watch", "make_plan", "train"]

_ROOMS = {
    "plan": ("Plan", "Settings", "make_plan"),
    "run": ("train",),
    "watch": ("Outcome", "Watch"),
}


def __getattr__(name: str) -> Any:
    """Import a public name on first access, so that decode workers do not load torch."""
    for room, names in _ROOMS.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{room}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
