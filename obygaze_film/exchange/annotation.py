"""Write W3C Web Annotations in JSON-LD for IIIF viewers and Advene; times are media fragments."""

import json
from typing import Any
from urllib.parse import quote

from obygaze_film.exchange.tiers import Exported, Span, Tier

CONTEXT = "http://www.w3.org/ns/anno.jsonld"
MEDIA_FRAGMENTS = "http://www.w3.org/TR/media-frags/"


def to_jsonld(made: Exported) -> str:
    """Write an annotation collection with one page; its `rights` and `summary` hold licence and caveats."""
    source = f"urn:film:{quote(made.film.movie, safe='')}"
    items = [_annotation(made, tier, span, source) for tier in made.tiers for span in tier.spans]
    model = made.model
    collection: dict[str, Any] = {
        "@context": CONTEXT,
        "id": f"urn:obygaze:{quote(made.film.movie, safe='')}:{quote(model.key, safe='')}",
        "type": "AnnotationCollection",
        "label": made.film.heading,
        "summary": " ".join(made.caveats),
        "creator": {
            "type": "Software",
            "name": f"obygaze {made.film.record.versions.get('obygaze', '')}".strip(),
            "description": f"{model.title}, {model.task_title}, SHA-256 {model.sha256}",
        },
        **({"rights": made.licence} if made.licence else {}),
        "total": len(items),
        "first": {"type": "AnnotationPage", "startIndex": 0, "items": items},
    }
    return json.dumps(collection, indent=1, ensure_ascii=False) + "\n"


def _annotation(made: Exported, tier: Tier, span: Span, source: str) -> dict[str, Any]:
    body: list[dict[str, Any]] = [
        {"type": "TextualBody", "value": span.text, "format": "text/plain", "purpose": "classifying"}
    ]
    if span.p is not None:
        numbers = {"p": span.p, "p_low": span.p_low, "p_high": span.p_high}
        known = {name: round(value, 4) for name, value in numbers.items() if value is not None}
        body.append({"type": "Dataset", "format": "application/json", "value": json.dumps(known)})
    return {
        "type": "Annotation",
        "motivation": "classifying",
        "generator": f"urn:sha256:{made.model.sha256}",
        "label": tier.name,
        "body": body,
        "target": {
            "source": source,
            "selector": {
                "type": "FragmentSelector",
                "conformsTo": MEDIA_FRAGMENTS,
                "value": f"t={span.start_s!r},{span.end_s!r}",
            },
        },
    }
