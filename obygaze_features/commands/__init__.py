"""Define the subcommands of `obygaze` for manifests, extraction and stores."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
