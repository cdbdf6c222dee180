"""README.md of a sealed store: what it is, in plain words."""

from collections.abc import Mapping, Sequence
from typing import Any

from obygaze_features.store.layout import SPEC_VERSION, STATUSES


def card(
    about: Mapping[str, Any],
    counts: Mapping[str, int],
    groups: Sequence[tuple[str, Mapping[str, Any], Sequence[str]]],
) -> str:
    """Write the card.

    Parameters
    ----------
    about
        The store's attributes: licence, citation, corpus, parent.
    counts
        Status -> number of clips.
    groups
        (name, provenance, lines that describe its arrays) of every backbone.
    """
    total = sum(counts.values())
    told = ", ".join(f"{counts[status]} {status}" for status in (*STATUSES[1:], STATUSES[0]))
    lines = [
        f"# Features of {about['corpus']['name']}",
        "",
        f"An obygaze feature store, format {SPEC_VERSION}: {total} clips, of which {told}.",
        "Rows of failed and missing clips hold no features; `data/clips.csv` says why.",
        "",
        f"- Licence: {about['licence']}",
        f"- Citation: {about['citation'] or 'none given'}",
    ]
    if about["parent"]:
        lines.append(f"- Grown from the store with fingerprint {about['parent']}")
    for name, provenance, arrays in groups:
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


def _origin(provenance: Mapping[str, Any]) -> list[str]:
    hub, sampling, decoder, compute = (provenance[name] for name in ("hub", "sampling", "decoder", "compute"))
    lines = []
    if provenance.get("untrained"):
        lines.append("UNTRAINED: the weights are random, the features mean nothing")
    if hub:
        lines.append(f"Weights: {hub['repository']} at revision {hub['revision']}")
    if provenance["weights_sha256"]:
        lines.append(f"SHA-256 of the weights: {provenance['weights_sha256']}")
    how_many = "" if sampling["n"] is None else f", {sampling['n']} frames a clip"
    lines += [
        f"Frames: {sampling['policy']}{how_many}",
        f"Decoded by PyAV {decoder['av']} (FFmpeg {decoder['ffmpeg']})",
        f"Computed in {compute['dtype']} on {compute['device']}",
        f"Licence of the backbone: {provenance['licence']}",
        f"Citation of the backbone: {provenance['citation'] or 'none given'}",
    ]
    return lines
