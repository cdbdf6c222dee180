"""Compute every metric and interval from one table of out-of-fold predictions."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
