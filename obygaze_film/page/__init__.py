"""Write the page of scored films: one HTML file to read, print and mail."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
