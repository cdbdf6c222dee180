"""Read spans of films from the files of other tools, and write them for these tools."""
