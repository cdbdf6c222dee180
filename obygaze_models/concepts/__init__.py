"""Concept activation vectors (CAVs), concept banks, and concept bottleneck models (PCBMs)."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
