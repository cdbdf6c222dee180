"""Exchange features with other tools, formats, labs and places.

Every module stands on sealed stores and knows no video, manifest or backbone: `import_sources`,
`import_tables` and `import_features` seal a store of another tool's features; `export` writes HDF5 and
AnnData; `publish` and `transfer` copy stores to and from zip files, servers, S3 and the Hub; `diff` and
`merge` compare and combine the stores of several labs.
"""
