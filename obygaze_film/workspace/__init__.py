"""Show scored films beside the user's own copies, and keep what people decide; on this machine alone."""
