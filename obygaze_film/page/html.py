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
from obygaze_film.schema import ModelRecord
from obygaze_models.report import asset, json_data, page

if TYPE_CHECKING:
    from obygaze_film.timeline import Timeline

TEXTS_OF_SCRIPT: Final = (
    "decimal",
    "hundredth",
    "probability_low",
    "probability_band",
    "seconds",
)
"""Keys of texts, without a prefix, that the scripts of the page and of the desk show."""

TEXTS_OF_DESK: Final = (
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
"""Keys of texts that page and desk share, without their prefix `desk_`."""

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
"""Key on the keyboard -> what it does on the page and on the desk, as a part of the name of a text."""

SCRIPT_BEGINS: Final = "<script"
SCRIPT_ENDS: Final = "</script>"
"""Tags around scripts and data in a page. Between them `&#233;` is no reference to a character."""

MAX_GROWTH: Final = 0.25
"""Share by which the data of a page may become longer by being written in ASCII."""

ALLOW_LOCAL_FILM: Final = {"media-src": "blob:"}
"""What the page's content security policy allows besides the page's script and style: a video from the
reader's own disk."""

AFTER_ALL_YEARS: Final = 9999
"""Year by which films are sorted whose year is unknown."""

COMMENT_OR_MODULE_SYNTAX: Final = re.compile(
    r"^import .*\n"  # lines that import from another module
    r"|^export "  # the word before what a module exports
    r"|^ *//.*\n",  # lines that are comments
    flags=re.MULTILINE,
)
"""What modules contain and a script in a page does without."""


def template_page(template: str, words: Words, styles: Iterable[str], script: str = "", **values: Any) -> str:
    """Fill a template of this package in a language.

    All templates can use `charts`, `clock`, the `language` and its texts `w`, in addition to `values`.

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
        Further variables of the template.

    Returns
    -------
    str
        The page as HTML, or the figure as SVG.
    """
    package = "obygaze_film.page"
    style = "".join(asset(f"{name}.css", package) for name in styles)
    return page(
        template,
        style,
        script,
        package=package,
        language=words.language,
        w=words,
        charts=charts,
        clock=clock,
        **values,
    )


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

    Returns
    -------
    str
        The page as HTML.
    """
    words = Words(language)
    owned_by_movie = owned or {}
    # Each film is a part of the page, with ids such as "f1" in it. A part has the film as the template shows
    # it (`view`), its data for the page's script, and the names of the people who decided something.
    parts = []
    for number, film in enumerate(sorted(films, key=_by_year_and_title), start=1):
        owned_of_film = owned_by_movie.get(film.movie, Owned())
        parts.append(_film_part(film, f"f{number}", words, top, owned_of_film))
    views = [part.view for part in parts]

    is_only_film = len(views) == 1
    title = views[0].heading if is_only_film else words.say("films_title", n=len(views))

    return template_page(
        "film.html.j2",
        words,
        styles=["film", "desk"],
        script=_script(modules.PAGE),
        sources=ALLOW_LOCAL_FILM,
        title=title,
        depth=2 if is_only_film else 3,  # level of the headings in a film's part: h2 or h3
        # Of each film, in the order of the page
        films=views,
        people=[part.people for part in parts],
        data=[part.data for part in parts],
        stills=[part.has_stills for part in parts],
        # Of the models
        models=_distinct_models(views),
        model_title=model_title,
        task_title=task_title,
        # How to read the page: keys of the keyboard, and sentences on what is shown
        keys=READING_KEYS,
        boundaries=_boundaries_sentence(views, words),
        contributions=_contributions(views, words),
        labelled=list(dict.fromkeys(view.whose_labels for view in views)),  # each sentence once
        texts=json_data(_script_texts(words)),  # that the script writes
    )


def _by_year_and_title(film: "Timeline") -> tuple[int, str, str]:
    """Return the sort key of a film: year, title, movie; films whose year is unknown come last."""
    return film.record.year or AFTER_ALL_YEARS, film.record.title, film.movie


def _distinct_models(views: Sequence[FilmView]) -> list[ModelRecord]:
    """Return the models of some films, each once even if several films were scored by it."""
    models = {}
    for view in views:
        for model in view.film.record.models:
            # The digest of a model's file identifies it; its name does so if the digest is not known.
            models[model.sha256 or model.key] = model
    return list(models.values())


class FilmPart(NamedTuple):
    """What the template needs for one film of a page.

    Attributes
    ----------
    view : FilmView
    data : Markup
        The film's data for the script, as JSON.
    people : list of str
        Names of those who decided something, each of whom has a row in the timeline.
    has_stills : bool
        Whether stills of the film are in the data.
    """

    view: FilmView
    data: Markup
    people: list[str]
    has_stills: bool


def _film_part(film: "Timeline", anchor: str, words: Words, top: int, owned: Owned) -> FilmPart:
    """Describe a film, with what its owner adds, for its part of the page; see `FilmView` for parameters."""
    view = FilmView(film, anchor, words, top=top, rates=owned.rates)
    data = page_data(view, owned.people, owned.copy)
    people = set()
    for decision in data["decisions"]:
        # Decisions on which several people agreed have a row of their own.
        if decision["kind"] != "agreed":
            people.add(str(decision["who"]))
    return FilmPart(
        view=view,
        data=_in_ascii(json_data(data)),
        people=sorted(people),
        has_stills=owned.copy is not None and bool(owned.copy.stills),
    )


def _script_texts(words: Words) -> dict[str, str]:
    """Collect the texts that the page's script shows, in a language: name -> text.

    Among the texts of a language (`words`), those that page and desk share have the prefix `desk_`, and those
    of the page alone `page_`; the script knows them without the prefix.
    """
    texts = {name: words[name] for name in TEXTS_OF_SCRIPT}
    for name in TEXTS_OF_DESK:
        texts[name] = words[f"desk_{name}"]
    return texts | words.texts_with_prefix("page_")


def _boundaries_sentence(views: Sequence[FilmView], words: Words) -> str:
    """Say how sharp the ends of passages are, compared with how far experts agree on such ends.

    The sentence is in the part of the page that explains how to read it. How far experts agree is known of
    the corpus that a model was trained on. If the films' models are of different corpora, or of one without
    experts, the sentence has no numbers.
    """
    experts = views[0].expert_agreement
    has_other_experts = any(view.expert_agreement != experts for view in views)
    if experts is None or has_other_experts:
        return words["about_4_unknown"]
    return phrases.boundaries_sentence(experts, words)


def _contributions(views: Sequence[FilmView], words: Words) -> list[str]:
    """Write for the part "how to read this page" what contributions and usual values of concepts are.

    Each is explained only if a model of the page has it: contributions, if it decides by concepts; usual
    values, if it knows any.
    """
    models = [view.model for view in views]
    decides_by_concepts = any(model.by_concepts for model in models)
    has_usual_values = any(concept.usual is not None for model in models for concept in model.concepts)
    sentences = []
    if decides_by_concepts:
        sentences.append(words["about_3"])
    if has_usual_values:
        sentences.append(words["about_3_usual"])
    return sentences


def _script(module_names: Sequence[str]) -> str:
    """Join modules of JavaScript, each after those that it imports, to one script in ASCII.

    A mailed page has no other files to import from, so that what one module exports, the next ones find in
    the same script. Lines of `import`, the word `export` and comments are therefore removed.
    """
    modules_text = "".join(asset(f"{name}.js", "obygaze_film.page") for name in module_names)
    script = COMMENT_OR_MODULE_SYNTAX.sub("", modules_text)
    return _escaped(script)


def _escaped(text: str) -> str:
    r"""Write JSON, or a script, in ASCII: other characters as escapes such as \u00e9."""
    return re.sub(r"[^\x00-\x7f]", lambda character: json.dumps(character.group())[1:-1], text)


def _in_ascii(data: Markup) -> Markup:
    """Write the JSON data of a page in ASCII, unless that makes the file larger by more than `MAX_GROWTH`.

    It does if the texts are in an alphabet other than the Latin one.
    """
    escaped = _escaped(data)
    n_bytes_before = len(data.encode())
    n_bytes = len(escaped)  # one byte a character
    if n_bytes > (1 + MAX_GROWTH) * n_bytes_before:
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

    Browsers don't resolve references in scripts. They read a page faster if all of it is ASCII: that of a
    film of twelve hours took 8 % less CPU time.
    """
    html_before, *scripts_with_html = page.split(SCRIPT_BEGINS)
    written = [_with_references(html_before)]
    for text in scripts_with_html:  # each a script, and the HTML after it
        script, end_tag, html_after = text.partition(SCRIPT_ENDS)
        written += [SCRIPT_BEGINS, script, end_tag, _with_references(html_after)]
    return "".join(written)


def _with_references(html: str) -> str:
    """Write characters that are not ASCII as references (`&#233;`)."""
    return html.encode("ascii", "xmlcharrefreplace").decode("ascii")
