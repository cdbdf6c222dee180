"""From published annotations, or a folder of videos, to a manifest."""

from .folder import import_folder
from .imported import Imported
from .mobygaze import import_mobygaze
from .obygaze12 import import_obygaze12

__all__ = ["Imported", "import_folder", "import_mobygaze", "import_obygaze12"]
