"""Feature stores: the on-disk format, and how it is staged, sealed, read, grown and verified.

The files follow a store's life and know only what comes before them (contracts in pyproject.toml): `format`
and its parts, `stage` to `sealing`, `store` with its groups, then growth and verification. Imports, exports,
copies and merges stand on this package: `obygaze_features.exchange`. Names are imported when they are first
used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
