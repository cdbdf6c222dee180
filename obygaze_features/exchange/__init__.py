"""Exchange features with other tools, formats, labs and places.

Every module stands on sealed stores and knows no video, manifest or backbone. `import_items`, `import_hdf5`,
`import_tables` and `import_features` seal a store of another tool's features; HDF5 and Parquet are read in a
subprocess. `export` writes HDF5 and AnnData. `publish` packs stores and pushes them to a folder, S3 or the
Hub, and `transfer` fetches them. `diff` and `merge` compare and combine the stores of several labs.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
