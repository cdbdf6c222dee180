"""Load backbones: frozen networks and descriptors that turn frames, texts or sound into vectors."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
