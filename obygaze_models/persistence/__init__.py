"""Keep models in files: a JSON card and arrays in a zip, read in two phases and never unpickled.

The guarantee ends here: a file that is read can't run code, take more memory than its own size a few times
over, or crash the program with anything but a `ModelError`. It can still hold a useless model or a card that
lies: nothing signs it.
"""
