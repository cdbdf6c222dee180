"""Save, calibrate and apply models trained on all movies; flag clips out of distribution."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
