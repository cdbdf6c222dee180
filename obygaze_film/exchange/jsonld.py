"""Write W3C Web Annotations (JSON-LD)."""

import json
from urllib.parse import quote

from obygaze_film.exchange.tiers import Exported, Tier, TierSpan
from obygaze_film.exchange.web import (
    creators,
    json_text,
    licence_iri,
    model_iri,
    software,
    time_fragment,
    uuid_of,
    uuid_of_span,
)


def to_jsonld(exported: Exported) -> str:
    """Write an annotation collection of W3C Web Annotation, of one page.

    Its `rights` hold the licence, its `summary` the caveats.
    """
    collection = f"urn:uuid:{uuid_of(exported)}"
    document: dict[str, object] = {
        "@context": "http://www.w3.org/ns/anno.jsonld",
        "id": collection,
        "type": "AnnotationCollection",
        "label": exported.heading,
        "summary": " ".join(exported.caveats),
    }
    if exported.has_model:
        document["creator"] = {"id": model_iri(exported), "type": "Software", "name": software(exported)}
    rights = licence_iri(exported.licence)
    if rights:
        document["rights"] = rights
    document["total"] = len(exported.spans)
    document["first"] = {
        "id": f"{collection}#page-1",
        "type": "AnnotationPage",
        "partOf": collection,
        "startIndex": 0,
        "items": [_annotation(exported, tier, span) for tier, span in exported.spans],
    }
    return json_text(document)


def _annotation(exported: Exported, tier: Tier, span: TierSpan) -> dict[str, object]:
    """Describe what a model or a person says about a span of the film as a W3C Web Annotation.

    A person is its creator, a model its generator. Notes of people are comments; everything else classifies.
    """
    is_note = tier.people is not None and tier.people.what == "note"
    motivation = "commenting" if is_note else "classifying"
    annotation: dict[str, object] = {
        "id": f"urn:uuid:{uuid_of_span(exported, tier, span)}",
        "type": "Annotation",
        "motivation": motivation,
    }
    if span.decided:
        annotation["creator"] = creators(span)
    else:
        annotation["generator"] = model_iri(exported)
    annotation["body"] = _bodies(tier, span, motivation)
    annotation["target"] = {
        "source": f"urn:film:{quote(exported.film.movie, safe='')}",
        "selector": {
            "type": "FragmentSelector",
            "conformsTo": "http://www.w3.org/TR/media-frags/",
            "value": time_fragment(span),
        },
    }
    return annotation


def _bodies(tier: Tier, span: TierSpan, motivation: str) -> list[dict[str, str]]:
    """Make the bodies of an annotation: the tier's name as a tag, the span's text, and its facts as JSON.

    Facts are the decision of a person, or the numbers of the model. `motivation` is that of the annotation,
    "commenting" or "classifying", and the purpose of the text.
    """
    bodies = [_body(tier.name, "tagging"), _body(span.text, motivation)]
    facts: dict[str, object] = span.decided.facts if span.decided else dict(span.numbers)
    if facts:
        bodies.append(_body(json.dumps(facts, ensure_ascii=False), "describing", "application/json"))
    return bodies


def _body(value: str, purpose: str, media_type: str = "text/plain") -> dict[str, str]:
    """Make a textual body of a Web Annotation; its purpose is a word of that standard, such as "tagging"."""
    return {"type": "TextualBody", "value": value, "format": media_type, "purpose": purpose}
