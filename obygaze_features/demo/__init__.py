"""Generate a small corpus with known labels: real H.264 files of abstract shapes."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
