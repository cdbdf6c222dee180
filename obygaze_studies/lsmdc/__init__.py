"""Re-train a backbone: the LSMDC X-CLIP from a CLIP (Ma et al., ACM MM 2022)."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
