"""What people look at. Needs matplotlib: the extra `figures`."""
