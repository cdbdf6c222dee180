"""Run MediaEval 2015 Affective Impact of Movies (Sjöberg et al. 2015): violence and induced affect."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
