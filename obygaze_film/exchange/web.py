"""Name annotations, and the stretches that they are of, for documents of the web.

Every annotation, page and collection has exactly one IRI (W3C Web Annotation Data Model 2017, section 3.1): a
version 5 UUID of model, film and span, so that the same film gives the same bytes.
"""

import json
import re
from uuid import NAMESPACE_URL, uuid5

from obygaze_film.exchange.tiers import Exported, Tier, TierSpan


def uuid_of(exported: Exported, *parts: str) -> str:
    """Name a film's scores by this model, or a part of them."""
    return str(
        uuid5(
            NAMESPACE_URL, "\n".join([exported.model.sha256, exported.model.key, exported.film.movie, *parts])
        )
    )


def uuid_of_span(exported: Exported, tier: Tier, span: TierSpan) -> str:
    """Name a span by its tier and times."""
    return uuid_of(exported, tier.name, repr(span.start_s), repr(span.end_s))


def model_iri(exported: Exported) -> str:
    """Name the model by its digest."""
    return f"urn:sha256:{exported.model.sha256}"


def software(exported: Exported) -> str:
    """Say which software and which model made the scores."""
    version = f"obygaze {exported.film.record.versions.get('obygaze', '')}".strip()
    return f"{version}: {exported.model.title}, {exported.model.task_title}"


def stretch(span: TierSpan) -> str:
    """Write a temporal fragment (W3C Media Fragments, in seconds)."""
    return f"t={span.start_s!r},{span.end_s!r}"


def creators(span: TierSpan) -> list[dict[str, str]]:
    """Name the people who decided a span, as Web Annotation does; nobody where a model wrote it."""
    judges = span.decided.judges if span.decided else ()
    return [{"type": "Person", "name": name} for name in judges]


def licence_iri(text: str) -> str:
    """Give the IRI of a licence: as stated, or SPDX's for an identifier; empty if it has none."""
    if re.fullmatch(r"https?://[^\s<>\"]+", text):
        return text
    return f"https://spdx.org/licenses/{text}" if re.fullmatch(r"[A-Za-z0-9.+-]+", text) else ""


def written(document: object) -> str:
    """Write a JSON document."""
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
