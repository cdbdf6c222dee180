"""Papers redone on the same stores: tables, figures, audits, tasks, and a network trained anew.

Examples
--------
>>> import obygaze_studies
>>> "paper" in dir(obygaze_studies)
True
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
