"""Write W3C Web Annotations (JSON-LD) and IIIF manifests (Presentation API 3.0).

Every annotation, page and collection has exactly one IRI (W3C Web Annotation Data Model 2017, section 3.1): a
version 5 UUID of model, film and span, so that the same film gives the same bytes. IIIF asks for HTTP IRIs:
they lie below `BASE`, a name that never resolves (RFC 6761), until the manifest is published.
"""

import json
import re
from typing import Any, Final
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid5

from obygaze_film.exchange.tiers import Exported, Tier, TierSpan

CONTEXT: Final = "http://www.w3.org/ns/anno.jsonld"
IIIF_CONTEXT: Final = "http://iiif.io/api/presentation/3/context.json"
MEDIA_FRAGMENTS: Final = "http://www.w3.org/TR/media-frags/"

BASE: Final = "https://obygaze.invalid/"
"""Begins the IRIs of a IIIF manifest; replace it by the address where the manifest is published."""


def to_jsonld(made: Exported) -> str:
    """Write an annotation collection with one page; its `rights` and `summary` hold licence and caveats."""
    collection, by = _urn(made), f"urn:sha256:{made.model.sha256}"
    items = [
        {
            "id": _urn(made, tier, span), "type": "Annotation", "motivation": "classifying", "generator": by,
            "body": _bodies(tier, span), "target": _target(made, span),
        }
        for tier, span in made.spans
    ]  # fmt: skip
    page = {"id": f"{collection}#page-1", "type": "AnnotationPage", "partOf": collection, "startIndex": 0}
    document: dict[str, Any] = {
        "@context": CONTEXT,
        "id": collection,
        "type": "AnnotationCollection",
        "label": made.film.heading,
        "summary": " ".join(made.caveats),
        "creator": {"id": by, "type": "Software", "name": _software(made)},
        **({"rights": licence} if (licence := _licence(made.licence)) else {}),
        "total": len(items),
        "first": {**page, "items": items},
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _target(made: Exported, span: TierSpan) -> dict[str, Any]:
    """Name a span of the film."""
    selector = {"type": "FragmentSelector", "conformsTo": MEDIA_FRAGMENTS, "value": _fragment(span)}
    return {"source": f"urn:film:{quote(made.film.movie, safe='')}", "selector": selector}


def to_iiif(made: Exported) -> str:
    """Write a IIIF manifest: one canvas of the film's length with one page of annotations.

    The film itself is not part of it: add a painting annotation where you may publish the film.
    """
    base = f"{BASE}{_uuid(made)}"
    canvas, label = f"{base}/canvas", {"none": [made.film.heading]}
    items = [
        {
            "id": f"{base}/{_uuid(made, tier, span)}",
            "type": "Annotation",
            "motivation": "commenting",  # viewers show comments and tags, nothing else
            "body": {"type": "TextualBody", "value": f"{tier.name}: {span.text}", "format": "text/plain"},
            "target": f"{canvas}#{_fragment(span)}",
        }
        for tier, span in made.spans
    ]
    page = {"id": f"{base}/page-1", "type": "AnnotationPage", "label": {"none": [made.model.title]}}
    shown = {
        "id": canvas, "type": "Canvas", "label": label, "duration": made.film.record.duration_s,
        "annotations": [{**page, "items": items}],
    }  # fmt: skip
    document = {
        "@context": IIIF_CONTEXT,
        "id": f"{base}/manifest.json",
        "type": "Manifest",
        "label": label,
        "requiredStatement": {"label": {"en": ["Limits"]}, "value": {"en": list(made.caveats)}},
        "metadata": [{"label": {"en": ["Model"]}, "value": {"none": [_software(made)]}}],
        "items": [shown],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _bodies(tier: Tier, span: TierSpan) -> list[dict[str, Any]]:
    """Write the tier as a tag, the text, and the numbers as JSON."""
    bodies = [
        {"type": "TextualBody", "value": tier.name, "format": "text/plain", "purpose": "tagging"},
        {"type": "TextualBody", "value": span.text, "format": "text/plain", "purpose": "classifying"},
    ]
    if span.numbers:
        numbers = json.dumps(span.numbers)
        bodies.append({**bodies[0], "value": numbers, "format": "application/json", "purpose": "describing"})
    return bodies


def _fragment(span: TierSpan) -> str:
    """Write a temporal fragment (W3C Media Fragments, normal play time in seconds)."""
    return f"t={span.start_s!r},{span.end_s!r}"


def _software(made: Exported) -> str:
    version = made.film.record.versions.get("obygaze", "")
    return f"obygaze {version}".strip() + f": {made.model.title}, {made.model.task_title}"


def _uuid(made: Exported, tier: Tier | None = None, span: TierSpan | None = None) -> str:
    """Name a film's scores by this model, or a span of them."""
    names = [made.model.sha256, made.model.key, made.film.movie]
    if tier is not None and span is not None:
        names += [tier.name, repr(span.start_s), repr(span.end_s)]
    return str(uuid5(NAMESPACE_URL, "\n".join(names)))


def _urn(made: Exported, tier: Tier | None = None, span: TierSpan | None = None) -> str:
    return f"urn:uuid:{_uuid(made, tier, span)}"


def _licence(text: str) -> str:
    """Give the IRI of a licence: as stated, or SPDX's for an identifier; empty if it has none."""
    if re.fullmatch(r"https?://[^\s<>\"]+", text):
        return text
    return f"https://spdx.org/licenses/{text}" if re.fullmatch(r"[A-Za-z0-9.+-]+", text) else ""
