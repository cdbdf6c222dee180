"""The manifest: clips, their annotations, and the paths of their videos."""

from obygaze_features.errors import ManifestError

from .agreement import Gamma, PairAgreement, agreement, gamma
from .clip import FIELDS, Clip
from .codebook import (
    BUILTIN,
    Codebook,
    Concept,
    Instance,
    Level,
    Scale,
    Task,
    builtin_codebook,
    find_codebook,
    load_codebook,
)
from .importers import (
    Film,
    Imported,
    Part,
    import_film,
    import_folder,
    import_images,
    import_mediaeval15,
    import_mobygaze,
    import_obygaze12,
    read_parts,
    shots_bytes,
    shots_file,
    window_of_model,
)
from .manifest import Manifest, codebook_file, holds_codebook, read_manifest, write_manifest
from .policies import LabelPolicy, apply_policy, policies_of
from .projection import Label, Projection, merge, project, windows
from .statistics import Statistics, is_obygaze12, statistics
from .texts import TextList, read_texts

__all__ = [
    "BUILTIN",
    "FIELDS",
    "Clip",
    "Codebook",
    "Concept",
    "Film",
    "Gamma",
    "Imported",
    "Instance",
    "Label",
    "LabelPolicy",
    "Level",
    "Manifest",
    "ManifestError",
    "PairAgreement",
    "Part",
    "Projection",
    "Scale",
    "Statistics",
    "Task",
    "TextList",
    "agreement",
    "apply_policy",
    "builtin_codebook",
    "codebook_file",
    "find_codebook",
    "gamma",
    "holds_codebook",
    "import_film",
    "import_folder",
    "import_images",
    "import_mediaeval15",
    "import_mobygaze",
    "import_obygaze12",
    "is_obygaze12",
    "load_codebook",
    "merge",
    "policies_of",
    "project",
    "read_manifest",
    "read_parts",
    "read_texts",
    "shots_bytes",
    "shots_file",
    "statistics",
    "window_of_model",
    "windows",
    "write_manifest",
]
