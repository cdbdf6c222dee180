"""Feature stores: the on-disk format, and how it is staged, sealed, read, grown and verified.

The modules follow a store's life and import only what comes before them (contracts in pyproject.toml):
`format`, `provenance` and `records`; `stage` to `sealing`; `store` with its groups; then growth and
verification. Imports, exports, copies and merges are in `obygaze_features.exchange`. Names are imported when
they are first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
