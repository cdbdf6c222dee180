"""README.md of a store: what it is, in plain words, under the front matter that dataset hubs read."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from obygaze_features.store.layout import STATUSES, TABLE, TEXTS

NOBODY_SAID = "NOASSERTION"
"""SPDX's word for a licence that nobody has stated."""

# Licences that the Hugging Face Hub has a name for (its documentation, "Licenses"), by their SPDX names.
_SAME_NAME = (
    "Apache-2.0 MIT BSD-2-Clause BSD-3-Clause BSL-1.0 CC0-1.0 CC-BY-2.0 CC-BY-2.5 CC-BY-3.0 CC-BY-4.0 "
    "CC-BY-SA-3.0 CC-BY-SA-4.0 CC-BY-NC-2.0 CC-BY-NC-3.0 CC-BY-NC-4.0 CC-BY-ND-4.0 CC-BY-NC-ND-3.0 "
    "CC-BY-NC-ND-4.0 CC-BY-NC-SA-2.0 CC-BY-NC-SA-3.0 CC-BY-NC-SA-4.0 CDLA-Permissive-1.0 "
    "CDLA-Permissive-2.0 CDLA-Sharing-1.0 ECL-2.0 EPL-2.0 etalab-2.0 EUPL-1.2 MPL-2.0 Unlicense WTFPL"
)
HUB_LICENCES = {name.lower(): name.lower() for name in _SAME_NAME.split()} | {
    "agpl-3.0-only": "agpl-3.0",
    "agpl-3.0-or-later": "agpl-3.0",
    "gpl-3.0-only": "gpl-3.0",
    "gpl-3.0-or-later": "gpl-3.0",
    "odbl-1.0": "odbl",
    "odc-by-1.0": "odc-by",
    "pddl-1.0": "pddl",
    NOBODY_SAID.lower(): "unknown",
}
_SIZES = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M")


@dataclass(frozen=True)
class Facts:
    """What a card tells.

    Attributes
    ----------
    about
        The store's attributes: licence, citation, corpus, parent.
    counts
        Status -> number of clips.
    groups
        (name, provenance, lines that describe its arrays) of every backbone.
    """

    about: Mapping[str, Any]
    counts: Mapping[str, int]
    groups: Sequence[tuple[str, Mapping[str, Any], Sequence[str]]]

    @property
    def total(self) -> int:
        """Number of clips."""
        return sum(self.counts.values())

    @property
    def rows(self) -> str:
        """What the rows are called: clips or texts."""
        texts = any(provenance["sampling"]["policy"] == TEXTS for _, provenance, _ in self.groups)
        return TEXTS if texts else "clips"


def describe(array: str, dtype: str, shape: Sequence[int], names: Sequence[str]) -> str:
    """Describe an array in a line; `shape` is one clip's, `names` the dimensions' with the clips' first."""
    return f"{array}: {dtype} [{', '.join(names)}], {' x '.join(map(str, shape))} a clip"


def readme(facts: Facts) -> str:
    """Write the card: front matter, and the same in words."""
    about = facts.about
    counts = ", ".join(f"{facts.counts[status]} {status}" for status in (*STATUSES[1:], STATUSES[0]))
    told = f"{facts.total} {facts.rows}, of which {counts}"
    lines = [
        *_front_matter(facts),
        "",
        f"# Features of {about['corpus']['name']}",
        "",
        f"An obygaze feature store, format {about['spec_version']}: {told}.",
        f"Rows of failed and missing {facts.rows} hold no features; `{TABLE}` says why.",
        "",
        f"- Licence: {about['licence']}",
        f"- Citation: {about['citation'] or 'none given'}",
    ]
    if about["parent"]:
        lines.append(f"- Grown from the store with fingerprint {about['parent']}")
    lines += [f"- Merged with the store with fingerprint {other}" for other in about.get("merged_with", ())]
    for name, provenance, arrays in facts.groups:
        lines += [
            "",
            f"## {name}",
            "",
            *(f"- {line}" for line in arrays),
            *(f"- {line}" for line in _origin(provenance)),
        ]
    lines += [
        "",
        "Check it with `sha256sum -c manifest-sha256.txt`, or better with `obygaze store verify --full`.",
        "",
    ]
    return "\n".join(lines)


def _front_matter(facts: Facts) -> list[str]:
    """Write the fields of the Hub's dataset cards; JSON strings are YAML strings."""
    licence = facts.about["licence"]
    known = HUB_LICENCES.get(licence.lower(), "other")
    tags = [
        "obygaze",
        "text-features" if facts.rows == TEXTS else "video-features",
        "zarr",
        *(name for name, *_ in facts.groups),
    ]
    size = _SIZES[min(len(_SIZES) - 1, max(0, len(str(facts.total)) - 3))]
    return [
        "---",
        f"license: {known}",
        *([f"license_name: {json.dumps(licence)}"] if known == "other" else []),
        f"pretty_name: {json.dumps('Features of ' + facts.about['corpus']['name'])}",
        f"size_categories: [{json.dumps(size)}]",
        f"tags: {json.dumps(tags)}",
        "configs:",
        "- config_name: clips",
        f"  data_files: {TABLE}",
        "---",
    ]


def _origin(provenance: Mapping[str, Any]) -> list[str]:
    hub, sampling, decoder, compute = (provenance[name] for name in ("hub", "sampling", "decoder", "compute"))
    lines = []
    if provenance.get("imported"):
        lines.append("IMPORTED: obygaze did not extract them; what follows is as declared, not observed")
    if provenance.get("untrained"):
        lines.append("UNTRAINED: the weights are random, the features mean nothing")
    if hub:
        lines.append(f"Weights: {hub['repository']} at revision {hub['revision']}")
    if provenance["weights_sha256"]:
        lines.append(f"SHA-256 of the weights: {provenance['weights_sha256']}")
    if sampling["policy"] != TEXTS:
        how_many = "" if sampling["n"] is None else f", {sampling['n']} frames a clip"
        lines += [
            f"Frames: {_known(sampling['policy'])}{how_many}",
            f"Decoded by PyAV {_known(decoder['av'])} (FFmpeg {_known(decoder['ffmpeg'])})",
        ]
    lines += [
        f"Computed in {_known(compute['dtype'])} on {_known(compute['device'])}",
        f"Licence of the backbone: {provenance['licence']}",
        f"Citation of the backbone: {provenance['citation'] or 'none given'}",
    ]
    return lines


def _known(value: str | None) -> str:
    return "unknown" if value is None else value
