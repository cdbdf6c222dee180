"""Names that are imported and, in the paths under test, never called."""

Compose = Normalize = ToTensor = None
