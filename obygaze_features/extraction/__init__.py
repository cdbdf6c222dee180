"""Extract features of videos and texts into stores: `extract`, its steps and its engines."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
