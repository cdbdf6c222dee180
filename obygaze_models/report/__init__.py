"""Write reports: tables with captions and figures, in formats for people and programs."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
