"""Models in files: a JSON card and arrays in a zip, read in two phases and never unpickled.

The guarantee ends here: a file that is read can't run code, take more memory than its own size a few times
over, or crash the program with anything but a `ModelError`. It can still hold a useless model or a card that
lies: nothing signs it.
"""

from obygaze_models.errors import ModelError
from obygaze_models.persistence.card import PROTOCOL, Card
from obygaze_models.persistence.model_file import ModelFile, construct, pack, read_model, write_model

__all__ = ["PROTOCOL", "Card", "ModelError", "ModelFile", "construct", "pack", "read_model", "write_model"]
