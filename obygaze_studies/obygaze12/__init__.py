"""Reproduce Tores et al., CVPR 2024: folds, tables, figures and printed numbers."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
