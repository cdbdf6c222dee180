"""Write W3C Web Annotations (JSON-LD) and IIIF manifests (Presentation API 3.0).

Every annotation, page and collection has exactly one IRI (W3C Web Annotation Data Model 2017, section 3.1): a
version 5 UUID of model, film and span, so that the same film gives the same bytes. IIIF asks for HTTP IRIs:
they lie below `BASE`, a name that never resolves (RFC 6761), until the manifest is published.
"""

import json
import re
from typing import Final
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid5

from obygaze_film.exchange.tiers import Exported, Tier, TierSpan

BASE: Final = "https://obygaze.invalid/"
"""Begins the IRIs of a IIIF manifest; replace it by the address where the manifest is published."""


def to_jsonld(made: Exported) -> str:
    """Write an annotation collection of one page; its `rights` and `summary` hold licence and caveats."""
    collection = f"urn:uuid:{_uuid(made)}"
    rights = _licence(made.licence)
    document = {
        "@context": "http://www.w3.org/ns/anno.jsonld",
        "id": collection,
        "type": "AnnotationCollection",
        "label": made.film.heading,
        "summary": " ".join(made.caveats),
        "creator": {"id": _model(made), "type": "Software", "name": _software(made)},
        **({"rights": rights} if rights else {}),
        "total": len(made.spans),
        "first": {
            "id": f"{collection}#page-1",
            "type": "AnnotationPage",
            "partOf": collection,
            "startIndex": 0,
            "items": [_annotation(made, tier, span) for tier, span in made.spans],
        },
    }
    return _written(document)


def _annotation(made: Exported, tier: Tier, span: TierSpan) -> dict[str, object]:
    """Describe what a span says of its stretch of the film."""
    body = [
        {"type": "TextualBody", "value": tier.name, "format": "text/plain", "purpose": "tagging"},
        {"type": "TextualBody", "value": span.text, "format": "text/plain", "purpose": "classifying"},
    ]
    if span.numbers:
        numbers = json.dumps(span.numbers)
        body.append(
            {"type": "TextualBody", "value": numbers, "format": "application/json", "purpose": "describing"}
        )
    selector = {
        "type": "FragmentSelector",
        "conformsTo": "http://www.w3.org/TR/media-frags/",
        "value": _stretch(span),
    }
    return {
        "id": f"urn:uuid:{_uuid_of_span(made, tier, span)}",
        "type": "Annotation",
        "motivation": "classifying",
        "generator": _model(made),
        "body": body,
        "target": {"source": f"urn:film:{quote(made.film.movie, safe='')}", "selector": selector},
    }


def to_iiif(made: Exported) -> str:
    """Write a manifest: one canvas of the film's length with one page of annotations.

    The film itself is not part of it: add a painting annotation where you may publish the film.
    """
    base = f"{BASE}{_uuid(made)}"
    page = {
        "id": f"{base}/page-1",
        "type": "AnnotationPage",
        "label": {"none": [made.model.title]},
        "items": [_comment(made, base, tier, span) for tier, span in made.spans],
    }
    canvas = {
        "id": f"{base}/canvas",
        "type": "Canvas",
        "label": {"none": [made.film.heading]},
        "duration": made.film.record.duration_s,
        "annotations": [page],
    }
    document = {
        "@context": "http://iiif.io/api/presentation/3/context.json",
        "id": f"{base}/manifest.json",
        "type": "Manifest",
        "label": {"none": [made.film.heading]},
        "requiredStatement": {"label": {"en": ["Limits"]}, "value": {"en": list(made.caveats)}},
        "metadata": [{"label": {"en": ["Model"]}, "value": {"none": [_software(made)]}}],
        "items": [canvas],
    }
    return _written(document)


def _comment(made: Exported, base: str, tier: Tier, span: TierSpan) -> dict[str, object]:
    """Describe a span as a comment: viewers show comments and tags, nothing else."""
    return {
        "id": f"{base}/{_uuid_of_span(made, tier, span)}",
        "type": "Annotation",
        "motivation": "commenting",
        "body": {"type": "TextualBody", "value": f"{tier.name}: {span.text}", "format": "text/plain"},
        "target": f"{base}/canvas#{_stretch(span)}",
    }


def _written(document: object) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _software(made: Exported) -> str:
    software = f"obygaze {made.film.record.versions.get('obygaze', '')}".strip()
    return f"{software}: {made.model.title}, {made.model.task_title}"


def _model(made: Exported) -> str:
    return f"urn:sha256:{made.model.sha256}"


def _stretch(span: TierSpan) -> str:
    """Write a temporal fragment (W3C Media Fragments, in seconds)."""
    return f"t={span.start_s!r},{span.end_s!r}"


def _uuid_of_span(made: Exported, tier: Tier, span: TierSpan) -> str:
    return _uuid(made, tier.name, repr(span.start_s), repr(span.end_s))


def _uuid(made: Exported, *of: str) -> str:
    """Name a film's scores by this model, or a span of them: by its tier and times."""
    return str(uuid5(NAMESPACE_URL, "\n".join([made.model.sha256, made.model.key, made.film.movie, *of])))


def _licence(text: str) -> str:
    """Give the IRI of a licence: as stated, or SPDX's for an identifier; empty if it has none."""
    if re.fullmatch(r"https?://[^\s<>\"]+", text):
        return text
    return f"https://spdx.org/licenses/{text}" if re.fullmatch(r"[A-Za-z0-9.+-]+", text) else ""
