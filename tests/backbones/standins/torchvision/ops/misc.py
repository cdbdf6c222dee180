"""A name that is imported and, in the paths under test, never called."""

FrozenBatchNorm2d = None
