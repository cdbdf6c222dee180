"""From one clip after another to a sealed store: the stage, its writers and its journals, and sealing."""
