"""MObyGaze (Tores et al. 2025): segments of 20 films, delimited freely by two annotators."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
