"""Write W3C Web Annotations (JSON-LD)."""

import json
from urllib.parse import quote

from obygaze_film.exchange.tiers import Exported, Tier, TierSpan
from obygaze_film.exchange.web import (
    creators,
    licence_iri,
    model_iri,
    software,
    stretch,
    uuid_of,
    uuid_of_span,
    written,
)


def to_jsonld(made: Exported) -> str:
    """Write an annotation collection of one page; its `rights` and `summary` hold licence and caveats."""
    collection = f"urn:uuid:{uuid_of(made)}"
    document: dict[str, object] = {
        "@context": "http://www.w3.org/ns/anno.jsonld",
        "id": collection,
        "type": "AnnotationCollection",
        "label": made.heading,
        "summary": " ".join(made.caveats),
    }
    if made.has_model:
        document["creator"] = {"id": model_iri(made), "type": "Software", "name": software(made)}
    rights = licence_iri(made.licence)
    if rights:
        document["rights"] = rights
    document["total"] = len(made.spans)
    document["first"] = {
        "id": f"{collection}#page-1",
        "type": "AnnotationPage",
        "partOf": collection,
        "startIndex": 0,
        "items": [_annotation(made, tier, span) for tier, span in made.spans],
    }
    return written(document)


def _annotation(made: Exported, tier: Tier, span: TierSpan) -> dict[str, object]:
    """Describe what a model or a person says of a stretch of the film."""
    annotation: dict[str, object] = {"id": f"urn:uuid:{uuid_of_span(made, tier, span)}", "type": "Annotation"}
    if span.decided and tier.people:
        is_note = tier.people.what == "note"
        annotation["motivation"] = "commenting" if is_note else "classifying"
        annotation["creator"] = creators(span)
        facts: dict[str, object] = span.decided.facts
    else:
        annotation["motivation"] = "classifying"
        annotation["generator"] = model_iri(made)
        facts = dict(span.numbers)
    body = [_body(tier.name, "tagging"), _body(span.text, str(annotation["motivation"]))]
    if facts:
        body.append(_body(json.dumps(facts, ensure_ascii=False), "describing", "application/json"))
    annotation["body"] = body
    selector = {
        "type": "FragmentSelector",
        "conformsTo": "http://www.w3.org/TR/media-frags/",
        "value": stretch(span),
    }
    annotation["target"] = {"source": f"urn:film:{quote(made.film.movie, safe='')}", "selector": selector}
    return annotation


def _body(value: str, purpose: str, kind: str = "text/plain") -> dict[str, str]:
    return {"type": "TextualBody", "value": value, "format": kind, "purpose": purpose}
