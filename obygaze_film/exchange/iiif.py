"""Write IIIF manifests (Presentation API 3.0)."""

from typing import Final

from obygaze_film.exchange.tiers import Exported, Tier, TierSpan
from obygaze_film.exchange.web import creators, json_text, software, time_fragment, uuid_of, uuid_of_span

PLACEHOLDER: Final = "https://obygaze.invalid/"
"""Beginning of all IRIs in a manifest, which in IIIF must be addresses of the web. This one never resolves
(RFC 6761): replace it by the address where the manifest is published."""


def to_iiif(exported: Exported) -> str:
    """Write a IIIF manifest: one canvas of the film's length with one page of annotations.

    The film itself is not part of it: add a painting annotation if you may publish the film. The IRIs begin
    with `PLACEHOLDER`, as the manifest's address is not known.
    """
    manifest_iri = f"{PLACEHOLDER}{uuid_of(exported)}"
    page = {
        "id": f"{manifest_iri}/page-1",
        "type": "AnnotationPage",
        "label": {"none": [exported.model.title if exported.has_model else exported.heading]},
        "items": [_comment(exported, manifest_iri, tier, span) for tier, span in exported.spans],
    }
    canvas = {
        "id": f"{manifest_iri}/canvas",
        "type": "Canvas",
        "label": {"none": [exported.heading]},
        "duration": exported.film.record.duration_s,
        "annotations": [page],
    }
    document: dict[str, object] = {
        "@context": "http://iiif.io/api/presentation/3/context.json",
        "id": f"{manifest_iri}/manifest.json",
        "type": "Manifest",
        "label": {"none": [exported.heading]},
        # What viewers must show.
        "requiredStatement": {"label": {"en": ["Limits"]}, "value": {"en": list(exported.caveats)}},
    }
    metadata = [{"label": {"en": ["Movie"]}, "value": {"none": [exported.film.movie]}}]
    if exported.has_model:
        metadata.append({"label": {"en": ["Model"]}, "value": {"none": [software(exported)]}})
    document["metadata"] = metadata
    document["items"] = [canvas]
    return json_text(document)


def _comment(exported: Exported, manifest_iri: str, tier: Tier, span: TierSpan) -> dict[str, object]:
    """Describe a span as a comment on its time in the film, because viewers show only comments and tags.

    The text begins with the name of the span's tier, on tiers of people in the form that importers read.
    `manifest_iri` begins the IRIs of the annotation and of the canvas that it is on.
    """
    text = tier.people.line(span.text) if tier.people else f"{tier.name}: {span.text}"
    comment: dict[str, object] = {
        "id": f"{manifest_iri}/{uuid_of_span(exported, tier, span)}",
        "type": "Annotation",
        "motivation": "commenting",
        "body": {"type": "TextualBody", "value": text, "format": "text/plain"},
        "target": f"{manifest_iri}/canvas#{time_fragment(span)}",
    }
    if span.decided:
        comment["creator"] = creators(span)
    return comment
