"""Write the page of scored films as one HTML file; no frame of a film is in it."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from markupsafe import Markup

from obygaze_features.arguments import checked
from obygaze_features.io import local_path, refuse_existing, write_whole
from obygaze_film.claims import phrases
from obygaze_film.claims.words import Words, clock
from obygaze_film.exchange.decided import Decided
from obygaze_film.judged_rate import FilmRates
from obygaze_film.page import charts, modules
from obygaze_film.page.translated import model_title, task_title
from obygaze_film.page.view import FilmView
from obygaze_film.page.view_model import ScoredCopy, page_data
from obygaze_models.report import asset, json_data, page

if TYPE_CHECKING:
    from obygaze_film.timeline import Timeline

SCRIPT: Final = (
    "decimal",
    "hundredth",
    "probability_low",
    "probability_band",
    "seconds",
)
"""Texts that the page's script shows, beside those of its own and those that it shares with the desk."""

SHARED: Final = (
    "agreed",
    "blindly",
    "counted",
    "cuts",
    "doubt",
    "hidden",
    "jump",
    "key_changed",
    "key_waits",
    "marked",
    "more_rows",
    "n_differ",
    "nothing",
    "of",
    "open",
    "passage",
    "space",
    "unknown",
    "was",
)
"""Texts of the desk, without their prefix, that the page's script shows too."""

READING_KEYS: Final = {
    " ": "play",
    "j": "back",
    "l": "forward",
    ",": "frame_back",
    ".": "frame_forward",
    "[": "shot_back",
    "]": "shot_forward",
    "n": "next",
    "p": "previous",
    "w": "weak",
    "r": "loop",
    "f": "rows",
    "v": "order",
    "+": "zoom_in",
    "-": "zoom_out",
    "0": "whole",
    "?": "keys",
}
"""Keys by which a film is read, on its page and on the desk, and the names of the texts of what they do."""

SCRIPT_BEGINS: Final = "<script"
SCRIPT_ENDS: Final = "</script>"
"""Tags around scripts and data in a page. Between them `&#233;` is no reference to a character."""

MOST_GROWTH: Final = 0.25
"""Share by which the data of a page may become longer by being written in ASCII."""

OWN_FILM: Final = {"media-src": "blob:"}
"""What the page's content security policy allows besides its own script and style: a film from the reader's
own disk."""


def template_page(template: str, words: Words, styles: Iterable[str], script: str = "", **values: Any) -> str:
    """Fill a template of this package in a language.

    Parameters
    ----------
    template : str
        File name of the template.
    words : Words
        The language.
    styles : iterable of str
        Names of this package's style sheets, without their suffix.
    script : str
        Script of the page.
    values
        Variables of the template.
    """
    style = "".join(asset(f"{name}.css", "obygaze_film.page") for name in styles)
    values |= {"package": "obygaze_film.page", "language": words.language, "w": words}
    return page(template, style, script, charts=charts, clock=clock, **values)


@dataclass(frozen=True)
class Owned:
    """What the owner of a scored film adds to its page.

    Attributes
    ----------
    rates : sequence of FilmRates
        Rates corrected by judgements (`read_rates`).
    people : sequence of Decided
        What people decided (`workspace.decisions.read_decided`).
    copy : ScoredCopy or None
        The owner's copy of the film, by which a reader's copy is recognised.
    """

    rates: Sequence[FilmRates] = ()
    people: Sequence[Decided] = ()
    copy: ScoredCopy | None = None


@checked
def film_page(
    films: "Sequence[Timeline]",
    *,
    top: int = 20,
    language: str = "en",
    owned: Mapping[str, Owned] | None = None,
) -> str:
    """Write scored films as one HTML page.

    For several films, add an index, sorted by year and title, never by rate.

    Parameters
    ----------
    films : sequence of Timeline
        At least one.
    top : int
        Segments to list for each film, if it has as many.
    language : str
        One of `claims.LANGUAGES`.
    owned : mapping, optional
        What the owner adds to the page of a film, by movie.
    """
    words = Words(language)
    # Films whose year is unknown come last.
    ordered = sorted(films, key=lambda film: (film.record.year or 9999, film.record.title, film.movie))
    parts = []
    for number, film in enumerate(ordered, start=1):
        owned_of_film = (owned or {}).get(film.movie, Owned())
        parts.append(_film_part(film, f"f{number}", words, top, owned_of_film))
    views = [part.view for part in parts]
    # Each model once, even if several films were scored by it.
    models = {model.sha256 or model.key: model for view in views for model in view.film.record.models}
    is_only_film = len(views) == 1
    return template_page(
        "film.html.j2",
        words,
        styles=["film", "desk"],
        script=_script(modules.PAGE),
        sources=OWN_FILM,
        title=views[0].heading if is_only_film else words.say("films_title", n=len(views)),
        depth=2 if is_only_film else 3,  # level of the headings in a film's part: h2 or h3
        films=views,
        people=[part.people for part in parts],
        data=[part.data for part in parts],
        stills=[part.has_stills for part in parts],
        models=models.values(),
        model_title=model_title,
        task_title=task_title,
        keys=READING_KEYS,
        boundaries=_boundaries(views, words),
        contributions=_contributions(views, words),
        labelled=list(dict.fromkeys(view.labelled for view in views)),
        texts=json_data(_script_texts(words)),
    )


class FilmPart(NamedTuple):
    """What the template needs for one film of a page.

    Attributes
    ----------
    view : FilmView
    data : Markup
        The film's data for the script, as JSON.
    people : list of str
        Names of those who decided something; decisions that were agreed have a tier of their own.
    has_stills : bool
    """

    view: FilmView
    data: Markup
    people: list[str]
    has_stills: bool


def _film_part(film: "Timeline", anchor: str, words: Words, top: int, owned: Owned) -> FilmPart:
    """Describe a film for its part of the page, with what its owner adds; parameters as of `FilmView`."""
    view = FilmView(film, anchor, words, top=top, rates=owned.rates)
    data = page_data(view, owned.people, owned.copy)
    people = {str(decision["who"]) for decision in data["decisions"] if decision["kind"] != "agreed"}
    has_stills = owned.copy is not None and bool(owned.copy.stills)
    return FilmPart(view, _in_ascii(json_data(data)), sorted(people), has_stills)


def _script_texts(words: Words) -> dict[str, str]:
    """Collect the texts of the page's script; those that the desk's script shows too have the same names."""
    texts = {name: words[name] for name in SCRIPT}
    texts |= {name: words[f"desk_{name}"] for name in SHARED}
    return texts | words.texts_with_prefix("page_")


def _boundaries(views: Sequence[FilmView], words: Words) -> str:
    """Say how sharp the ends of passages are, compared with how far experts agree on such ends.

    Films scored by models of different corpora, or of one without experts, get a sentence without numbers.
    """
    experts = views[0].experts
    if experts is None or any(view.experts != experts for view in views):
        return words["about_4_unknown"]
    return phrases.boundaries_sentence(experts, words)


def _contributions(views: Sequence[FilmView], words: Words) -> list[str]:
    """Explain the contributions of concepts, and their usual values, if a model of the page has them."""
    models = [view.model for view in views]
    lines = []
    if any(model.by_concepts for model in models):
        lines.append(words["about_3"])
    if any(concept.usual is not None for model in models for concept in model.concepts):
        lines.append(words["about_3_usual"])
    return lines


def _script(module_names: Sequence[str]) -> str:
    """Join modules, each after those that it imports, to one script in ASCII.

    A mailed page has no other files to import from: lines with `import` are left out, and so is the word
    `export`. Lines that are comments are left out too.
    """
    text = "".join(asset(f"{name}.js", "obygaze_film.page") for name in module_names)
    return _escaped(re.sub(r"^import .*\n|^export |^ *//.*\n", "", text, flags=re.MULTILINE))


def _escaped(text: str) -> str:
    r"""Write JSON, or a script, in ASCII: other characters as escapes such as \u00e9."""
    return re.sub(r"[^\x00-\x7f]", lambda character: json.dumps(character.group())[1:-1], text)


def _in_ascii(data: Markup) -> Markup:
    """Write the JSON data of a page in ASCII, unless they become longer by more than `MOST_GROWTH`.

    They do if their texts are in an alphabet other than the Latin one.
    """
    escaped = _escaped(data)
    if len(escaped) > (1 + MOST_GROWTH) * len(data.encode()):
        return data
    return Markup(escaped)  # noqa: S704 - escaped before


@checked
def write_film_page(
    films: "Sequence[Timeline]",
    path: str | Path,
    *,
    force: bool = False,
    top: int = 20,
    language: str = "en",
    owned: Mapping[str, Owned] | None = None,
) -> None:
    """Write the page of scored films into a file; options as of `film_page`.

    Raises
    ------
    OutputError
        The file exists, and `force` is not given.
    """
    path = local_path(path)
    refuse_existing(path, force=force)
    text = film_page(films, top=top, language=language, owned=owned)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, _page_in_ascii(text))


def _page_in_ascii(page: str) -> str:
    """Write characters of a page that are not ASCII as references (`&#233;`), except in its scripts.

    Browsers read a page faster if all of it is ASCII: that of a film of twelve hours took 8 % less CPU time.
    """
    html, *scripts_with_html = page.split(SCRIPT_BEGINS)
    written = [_with_references(html)]
    for text in scripts_with_html:  # each a script, and the HTML after it
        script, end_tag, html = text.partition(SCRIPT_ENDS)
        written += [SCRIPT_BEGINS, script, end_tag, _with_references(html)]
    return "".join(written)


def _with_references(html: str) -> str:
    """Write characters that are not ASCII as references (`&#233;`)."""
    return html.encode("ascii", "xmlcharrefreplace").decode("ascii")
