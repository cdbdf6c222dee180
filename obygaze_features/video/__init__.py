"""Read exactly the requested frames of a video file or still image, each with its number and time."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
