"""Write croissant.json: Croissant 1.1 and its RAI 1.0 (MLCommons 2026, 2024).

No reader of it decodes Zarr, so it describes the table of clips and names the features in words.
"""

import re
from collections.abc import Mapping
from typing import Any

from obygaze_features.io import NO_LICENCE
from obygaze_features.lines import json_bytes
from obygaze_features.store.facts import Facts, limits
from obygaze_features.store.format import TABLE
from obygaze_features.store.records import FIELDS
from obygaze_features.text import counted

TERMS = [
    "arrayShape",
    "citeAs",
    "column",
    "conformsTo",
    "containedIn",
    "cr",
    "rai",
    "data",
    "dataType",
    "dct",
    "description",
    "equivalentProperty",
    "examples",
    "extract",
    "field",
    "fileProperty",
    "fileObject",
    "fileSet",
    "format",
    "includes",
    "isArray",
    "isLiveDataset",
    "jsonPath",
    "key",
    "md5",
    "name",
    "parentField",
    "path",
    "recordSet",
    "references",
    "regex",
    "repeated",
    "replace",
    "samplingRate",
    "sc",
    "separator",
    "source",
    "subField",
    "transform",
]
"""Terms of the context. Those that are not in `OTHER_TERMS` are Croissant's own."""

OTHER_TERMS: Mapping[str, object] = {
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "description": {"@container": "@language"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "name": {"@container": "@language"},
    "sc": "https://schema.org/",
}
CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    **{term: OTHER_TERMS.get(term, f"cr:{term}") for term in TERMS},
}

PERSONAL_INFORMATION = (
    "Numbers that models gave for pictures, sound or texts, which may be of people. The store has no frames."
)
INTENDED_USE = (
    "Training and testing models of what the clips show, without the videos. Not made to find or to judge a "
    "person."
)


def croissant(facts: Facts, version: str, table_sha256: str, table_bytes: int) -> bytes:
    """Return the bytes of croissant.json, which are the same for the same store.

    Parameters
    ----------
    facts
        What is known of the store, from which its README is written too; `facts.about` has its attributes.
    version
        The store's version.
    table_sha256, table_bytes
        Digest and size of `data/clips.csv`.
    """
    # A group holds the features of one backbone.
    features_of_groups = []
    sampling_of_groups = []
    for group, provenance, array_lines in facts.groups:
        features_of_groups.append(f"{group} ({', '.join(array_lines)})")
        sampling_of_groups.append(_sampling(group, provenance["sampling"]))
    features = "; ".join(features_of_groups)
    description = (
        f"Features that frozen models gave for {facts.counted_rows} of "
        f"{facts.about['corpus']['name']}: {features}. The features are the Zarr group data/features.zarr."
    )

    document: dict[str, object] = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": ["http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0"],
        "rai:personalSensitiveInformation": PERSONAL_INFORMATION,
        "rai:dataUseCases": INTENDED_USE,
        "name": _name(facts.about["corpus"]["name"]),
        "description": description,
        "license": _licence(facts.about["licence"]),
        "version": version,
        "distribution": [_table(table_sha256, table_bytes)],
        "recordSet": [_clips(facts.rows)],
        "rai:dataLimitations": " ".join(limits(facts)),
        "rai:dataPreprocessingProtocol": "; ".join(sampling_of_groups),
    }

    if facts.about["citation"]:
        document["citeAs"] = facts.about["citation"]
    return json_bytes(document)


def _name(corpus: str) -> str:
    """Return the name of a corpus's store: letters, digits, '-' and '_', as Croissant demands."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", f"Features of {corpus}").strip("-")


def _licence(licence: str) -> str:
    """Return the URL of a licence at SPDX.

    What has no page there stays as it is: an expression of several licences, such as "MIT AND Apache-2.0", an
    own licence ("LicenseRef-..."), and the statement that there is none.
    """
    is_own = licence.startswith("LicenseRef")
    is_one_id = re.fullmatch(r"[A-Za-z0-9.+-]+", licence) is not None  # an expression has blanks
    if licence == NO_LICENCE or is_own or not is_one_id:
        return licence
    return f"https://spdx.org/licenses/{licence}.html"


def _table(sha256: str, n_bytes: int) -> dict[str, object]:
    """Describe the file `clips.csv` as a Croissant FileObject, with its SHA-256 and its size."""
    return {
        "@type": "cr:FileObject",
        "@id": "clips.csv",
        "name": "clips.csv",
        "description": "What became of every clip",
        "contentUrl": TABLE,
        "contentSize": f"{n_bytes} B",
        "encodingFormat": "text/csv",
        "sha256": sha256,
    }


def _clips(rows: str) -> dict[str, object]:
    """Describe the columns of `clips.csv` as a Croissant RecordSet.

    Parameters
    ----------
    rows
        What the rows of the store are: "clips" or "texts". Only a store of texts has the column `text`.
    """
    fields = []
    for name, (data_type, description) in FIELDS.items():
        if name == "text" and rows != "texts":
            continue
        field = {
            "@type": "cr:Field",
            "@id": f"clips/{name}",
            "name": name,
            "description": description,
            "dataType": data_type,
            "source": {"fileObject": {"@id": "clips.csv"}, "extract": {"column": name}},
        }
        fields.append(field)
    return {
        "@type": "cr:RecordSet",
        "@id": "clips",
        "name": "clips",
        "description": "The clips, in the order of the rows of every array",
        "key": {"@id": "clips/clip"},
        "field": fields,
    }


def _sampling(group: str, sampling: Mapping[str, Any]) -> str:
    """Return in words how the frames of a group were chosen, such as "clip: uniform, 8 frames a clip"."""
    text = f"{group}: {sampling['policy']}"
    n_frames = sampling.get("n")
    if n_frames:
        text += f", {counted(n_frames, 'frame')} a clip"
    return text
