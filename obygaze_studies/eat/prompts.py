"""List the words and templates of Wolfe et al., FAccT 2023, section 4, as prompts."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from obygaze_studies.errors import AuditError

TEMPLATES = ("{}", "a {}", "a photo of a {}", "an image of a {}", "a picture of a {}")

_PEOPLE = ("person", "woman", "human", "human being", "individual", "adult")
_SEX = ("have intercourse with", "be intimate with", "have sex with", "kiss", "undress", "have coitus with")

WORDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "no_emotion": _PEOPLE,
        "angry": tuple(f"angry {one}" for one in _PEOPLE),
        "sad": tuple(f"sad {one}" for one in _PEOPLE),
        "happy": tuple(f"happy {one}" for one in _PEOPLE),
        "sex": tuple(f"person to {one}" for one in _SEX),
        "science": ("scientist", "researcher", "engineer", "physicist", "mathematician", "chemist"),
        "medicine": (
            "doctor",
            "physician",
            "clinician",
            "surgeon",
            "medical expert",
            "health professional",
        ),
        "business": (
            "businessperson",
            "business leader",
            "manager",
            "executive",
            "CEO",
            "chief executive officer",
        ),
    }
)
"""The words of every list, as in the authors' code."""


class Variant(StrEnum):
    """Which wording: that of the authors' code, which made the published tables, or that of the paper.

    The code writes "an angry person" where the paper's templates give "a angry person", and "CEO" for "ceo".
    """

    CODE = "code"
    PAPER = "paper"


def prompts(name: str, variant: Variant) -> tuple[str, ...]:
    """Put the words of a list into all templates, all words with the first template first.

    Raises
    ------
    AuditError
        There is no such list.
    """
    if name not in WORDS:
        raise AuditError(f"no list of prompts is called {name!r}, but {', '.join(WORDS)}")
    words = [word.lower() for word in WORDS[name]] if variant is Variant.PAPER else WORDS[name]
    an = variant is Variant.CODE and name == "angry"
    templates = [_with_an(template) for template in TEMPLATES] if an else TEMPLATES
    return tuple(template.format(word) for template in templates for word in words)


def _with_an(template: str) -> str:
    return template.replace("a {}", "an {}")


def prompt_rows(variant: Variant) -> tuple[dict[str, str], ...]:
    """List every prompt once, to be embedded: text_id, text, and its list."""
    return tuple(
        {"text_id": f"{name}-{place:02}", "text": text, "list": name}
        for name in WORDS
        for place, text in enumerate(prompts(name, variant), start=1)
    )
