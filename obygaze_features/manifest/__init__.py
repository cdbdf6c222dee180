"""The manifest: which clips there are, what annotators said of them, and where their videos lie."""

from .agreement import Gamma, PairAgreement, agreement, gamma
from .clip import FIELDS, Clip
from .errors import ManifestError
from .importers import (
    Film,
    Imported,
    import_film,
    import_folder,
    import_images,
    import_mediaeval15,
    import_mobygaze,
    import_obygaze12,
)
from .manifest import Manifest, read_manifest, write_manifest
from .policies import LabelPolicy, apply_policy
from .projection import Label, Projection, merge, project, windows
from .statistics import Statistics, statistics
from .texts import TextList, read_texts
from .thesaurus import Thesaurus, thesaurus
from .vocabulary import CONCEPTS, LEVELS, NON_VISUAL_CONCEPTS, VISUAL_CONCEPTS, Level

__all__ = [
    "CONCEPTS",
    "FIELDS",
    "LEVELS",
    "NON_VISUAL_CONCEPTS",
    "VISUAL_CONCEPTS",
    "Clip",
    "Film",
    "Gamma",
    "Imported",
    "Label",
    "LabelPolicy",
    "Level",
    "Manifest",
    "ManifestError",
    "PairAgreement",
    "Projection",
    "Statistics",
    "TextList",
    "Thesaurus",
    "agreement",
    "apply_policy",
    "gamma",
    "import_film",
    "import_folder",
    "import_images",
    "import_mediaeval15",
    "import_mobygaze",
    "import_obygaze12",
    "merge",
    "project",
    "read_manifest",
    "read_texts",
    "statistics",
    "thesaurus",
    "windows",
    "write_manifest",
]
