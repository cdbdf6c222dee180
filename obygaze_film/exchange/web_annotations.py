"""Write W3C Web Annotations (JSON-LD) and IIIF manifests (Presentation API 3.0).

Every annotation, page and collection has exactly one IRI (W3C Web Annotation Data Model 2017, section 3.1): a
version 5 UUID of model, film and span, so that the same film gives the same bytes. IIIF asks for HTTP IRIs:
they lie below `BASE`, a name that never resolves (RFC 6761), until the manifest is published.
"""

import json
import re
from functools import partial
from typing import Final
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid5

from obygaze_features.templates import filled
from obygaze_film.exchange.tiers import Exported

BASE: Final = "https://obygaze.invalid/"
"""Begins the IRIs of a IIIF manifest; replace it by the address where the manifest is published."""


def to_json(made: Exported, *, template: str) -> str:
    """Fill in a template of JSON; a stretch is a temporal fragment (W3C Media Fragments, in seconds).

    An annotation collection has one page; its `rights` and `summary` hold licence and caveats. A manifest of
    IIIF has one canvas of the film's length with one page of annotations; the film itself is not part of it:
    add a painting annotation where you may publish the film.
    """
    software = f"obygaze {made.film.record.versions.get('obygaze', '')}".strip()
    values = {
        "id": f"urn:uuid:{_uuid(made)}",
        "base": f"{BASE}{_uuid(made)}",
        "by": f"urn:sha256:{made.model.sha256}",
        "software": f"{software}: {made.model.title}, {made.model.task_title}",
        "rights": _licence(made.licence),
        "quoted": quote(made.film.movie, safe=""),
        "film": made.film,
        "model": made.model,
        "caveats": list(made.caveats),
        "spans": [
            (
                _uuid(made, tier.name, repr(span.start_s), repr(span.end_s)),
                tier,
                span,
                f"t={span.start_s!r},{span.end_s!r}",
            )
            for tier, span in made.spans
        ],
    }
    written = partial(json.dumps, ensure_ascii=False)
    text = filled(__package__, template, values, written, {"json": json.dumps})
    return json.dumps(json.loads(text), indent=1, ensure_ascii=False) + "\n"


def _uuid(made: Exported, *of: str) -> str:
    """Name a film's scores by this model, or a span of them: by its tier and times."""
    return str(uuid5(NAMESPACE_URL, "\n".join([made.model.sha256, made.model.key, made.film.movie, *of])))


def _licence(text: str) -> str:
    """Give the IRI of a licence: as stated, or SPDX's for an identifier; empty if it has none."""
    if re.fullmatch(r"https?://[^\s<>\"]+", text):
        return text
    return f"https://spdx.org/licenses/{text}" if re.fullmatch(r"[A-Za-z0-9.+-]+", text) else ""
