"""A sealed store where it lies, in a folder, a zip or on a server: found, opened, read, verified."""
