"""Whole films: scores in time, passages, rates, judgements, agreement with people, pages and exports.

Examples
--------
>>> import obygaze_film
>>> "read_films" in dir(obygaze_film)
True
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
