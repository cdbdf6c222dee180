"""Import manifests from published annotations, or from a folder of videos or images."""

from obygaze_features.manifest.importers.eaf import import_eaf
from obygaze_features.manifest.importers.film import Film, automatic_hop, import_film, window_of_model
from obygaze_features.manifest.importers.folder import import_folder, import_images
from obygaze_features.manifest.importers.imported import Imported
from obygaze_features.manifest.importers.judgements import SEEN_SCORE, import_judgements
from obygaze_features.manifest.importers.mediaeval15 import import_mediaeval15
from obygaze_features.manifest.importers.mobygaze import import_mobygaze
from obygaze_features.manifest.importers.obygaze12 import import_obygaze12
from obygaze_features.manifest.importers.parts import Part, read_parts, shots_bytes, shots_file

__all__ = [
    "SEEN_SCORE",
    "Film",
    "Imported",
    "Part",
    "automatic_hop",
    "import_eaf",
    "import_film",
    "import_folder",
    "import_images",
    "import_judgements",
    "import_mediaeval15",
    "import_mobygaze",
    "import_obygaze12",
    "read_parts",
    "shots_bytes",
    "shots_file",
    "window_of_model",
]
