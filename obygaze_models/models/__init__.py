"""Small models on frozen features and their baselines, as scikit-learn estimators."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
