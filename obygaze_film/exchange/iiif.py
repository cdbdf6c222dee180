"""Write IIIF manifests (Presentation API 3.0)."""

from typing import Final

from obygaze_film.exchange.tiers import Exported, Tier, TierSpan
from obygaze_film.exchange.web import creators, software, stretch, uuid_of, uuid_of_span, written

BASE: Final = "https://obygaze.invalid/"
"""Begins the IRIs of a manifest, which are HTTP's in IIIF: a name that never resolves (RFC 6761). Replace it
by the address where the manifest is published."""


def to_iiif(exported: Exported) -> str:
    """Write a manifest: one canvas of the film's length with one page of annotations.

    The film itself is not part of it: add a painting annotation where you may publish the film.
    """
    base = f"{BASE}{uuid_of(exported)}"
    page = {
        "id": f"{base}/page-1",
        "type": "AnnotationPage",
        "label": {"none": [exported.model.title if exported.has_model else exported.heading]},
        "items": [_comment(exported, base, tier, span) for tier, span in exported.spans],
    }
    canvas = {
        "id": f"{base}/canvas",
        "type": "Canvas",
        "label": {"none": [exported.heading]},
        "duration": exported.film.record.duration_s,
        "annotations": [page],
    }
    document: dict[str, object] = {
        "@context": "http://iiif.io/api/presentation/3/context.json",
        "id": f"{base}/manifest.json",
        "type": "Manifest",
        "label": {"none": [exported.heading]},
        "requiredStatement": {"label": {"en": ["Limits"]}, "value": {"en": list(exported.caveats)}},
    }
    metadata = [{"label": {"en": ["Movie"]}, "value": {"none": [exported.film.movie]}}]
    if exported.has_model:
        metadata.append({"label": {"en": ["Model"]}, "value": {"none": [software(exported)]}})
    document["metadata"] = metadata
    document["items"] = [canvas]
    return written(document)


def _comment(exported: Exported, base: str, tier: Tier, span: TierSpan) -> dict[str, object]:
    """Describe a span as a comment: viewers show comments and tags, nothing else."""
    text = tier.people.line(span.text) if tier.people else f"{tier.name}: {span.text}"
    comment: dict[str, object] = {
        "id": f"{base}/{uuid_of_span(exported, tier, span)}",
        "type": "Annotation",
        "motivation": "commenting",
        "body": {"type": "TextualBody", "value": text, "format": "text/plain"},
        "target": f"{base}/canvas#{stretch(span)}",
    }
    if span.decided:
        comment["creator"] = creators(span)
    return comment
