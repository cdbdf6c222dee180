"""Import manifests from published annotations, or from a folder of videos or images."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
