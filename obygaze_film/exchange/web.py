"""Name annotations, and the spans of the film that they are about, for documents of the web.

Every annotation, page and collection has exactly one IRI (W3C Web Annotation Data Model 2017, section 3.1): a
version 5 UUID of model, film and span, so that the same film gives the same bytes.
"""

import json
import re
from uuid import NAMESPACE_URL, uuid5

from obygaze_film.exchange.tiers import Exported, Tier, TierSpan


def uuid_of(exported: Exported, *parts: str) -> str:
    """Return a UUID made of the model's digest and key, the film's name, and further `parts`.

    It is of version 5, a digest of these names: the same export always has the same UUIDs.
    """
    names = [exported.model.sha256, exported.model.key, exported.film.movie, *parts]
    return str(uuid5(NAMESPACE_URL, "\n".join(names)))


def uuid_of_span(exported: Exported, tier: Tier, span: TierSpan) -> str:
    """Return the UUID of a span, by the name of its tier and its times."""
    return uuid_of(exported, tier.name, repr(span.start_s), repr(span.end_s))


def model_iri(exported: Exported) -> str:
    """Return the IRI of the model, by the digest of its file."""
    return f"urn:sha256:{exported.model.sha256}"


def software(exported: Exported) -> str:
    """Name the version of obygaze, if it is known, and the model that made the scores."""
    version = exported.film.record.versions.get("obygaze", "")
    program = f"obygaze {version}".strip()
    return f"{program}: {exported.model.title}, {exported.model.task_title}"


def time_fragment(span: TierSpan) -> str:
    """Write the times of a span as the end of an IRI, such as `t=12.5,20.0` (W3C Media Fragments)."""
    return f"t={span.start_s!r},{span.end_s!r}"


def creators(span: TierSpan) -> list[dict[str, str]]:
    """Describe the people who decided about a span, as Web Annotation does; empty if a model wrote it."""
    judges = span.decided.judges if span.decided else ()
    return [{"type": "Person", "name": name} for name in judges]


def licence_iri(licence: str) -> str:
    """Return the IRI of a licence.

    A web address is returned as it is; for an SPDX identifier, SPDX's address of it; for any other text, "".
    """
    is_address = re.fullmatch(r"(?i:https?)://[^\s<>\"]+", licence) is not None
    if is_address:
        return licence
    is_identifier = re.fullmatch(r"[A-Za-z0-9.+-]+", licence) is not None
    return f"https://spdx.org/licenses/{licence}" if is_identifier else ""


def json_text(document: object) -> str:
    """Write a document as JSON, on a line for each value."""
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
