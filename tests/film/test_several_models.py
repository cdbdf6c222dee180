"""Of a film that several models scored each sentence is of one: it names it, and its conditions alone."""

import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from msgspec.structs import replace as changed

from obygaze.cli import main
from obygaze_features.manifest import Manifest, builtin_codebook, write_manifest
from obygaze_film.claims import LANGUAGES, Words, film_claims, kinds
from obygaze_film.commands.film_lines import lines_of_film
from obygaze_film.exchange import export
from obygaze_film.page import film_page
from obygaze_film.page.figures import film_figure
from obygaze_film.page.view import FilmView
from obygaze_film.windows_to_judge import choose_next
from obygaze_film.workspace.decisions import Decisions
from obygaze_film.workspace.open_film import OpenFilm
from obygaze_film.workspace.pages import next_window
from tests.film.page.invented import CONCEPTS, invented_film
from tests.film.page.test_page import text_of
from tests.film.saying import data_of, heading_of
from tests.film.workspace.deciding import judge_blindly

BOOK = builtin_codebook("obygaze12")
PLAIN, CHANCE, NARROW, SEEN = "pcbm_lr", "chance", "narrow", "seen"
WARNINGS = {
    PLAIN: set(),
    CHANCE: {"verdict_no_skill"},
    NARROW: {"verdict_levels"},
    SEEN: {"verdict_trained"},
}


def scored_by(*others, first=None):
    """A film that `PLAIN` scored, and other models with the same rows."""
    film = invented_film(n_rows=60, duration_s=600.0)
    models = [first or film.model(), *others]
    table = pd.concat([film.table.assign(model=model.key) for model in models], ignore_index=True)
    return replace(film, record=changed(film.record, models=models), table=table)


MODEL = invented_film(n_rows=60, duration_s=600.0).model()
FILM = scored_by(
    changed(MODEL, key=CHANCE, no_skill=True),
    changed(MODEL, key=NARROW, levels_left_out=["EN"]),
    changed(MODEL, key=SEEN, is_trained_on=True),
)


def warnings_in(text, words):
    """Name the warnings that a text has."""
    texts = {key: words.say(key, levels="EN") for keys in WARNINGS.values() for key in keys}
    return {key for key, warning in texts.items() if warning in text}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_title_has_the_conditions_of_its_own_model_alone(language):
    words = Words(language)
    for key, expected in WARNINGS.items():
        assert warnings_in(heading_of(FILM, language, key), words) == expected
        (title,) = [claim for claim in film_claims(FILM, key) if isinstance(claim, kinds.Title)]
        assert title.who == (key,)
    page = film_page([FILM], language=language)
    assert warnings_in(re.search("<h1.*?</h1>", page)[0], words) == set()
    # Those of the other models stand beside their own rows of the timeline.
    assert warnings_in(text_of(page), words) == {key for keys in WARNINGS.values() for key in keys}


@pytest.mark.parametrize("kind", ["vtt", "csv", "eaf", "jsonld"])
def test_an_export_has_the_conditions_of_its_own_model_alone(kind):
    words = Words("en")
    for key, expected in WARNINGS.items():
        assert warnings_in(export(FILM, kind, model=key), words) == expected


def test_the_terminal_says_whose_condition_each_is():
    title, *_ = lines_of_film(FILM, Words("en"))
    parts = title.split(" · ")[1:]
    assert [part.partition(":")[0] for part in parts] == [CHANCE, NARROW, SEEN]
    for part in parts:
        assert warnings_in(part, Words("en")) == WARNINGS[part.partition(":")[0]]
    alone, *_ = lines_of_film(scored_by(), Words("en"))
    assert alone == heading_of(scored_by())


def test_concepts_of_another_model_than_the_one_shown_name_it():
    """Of two models the first decides without concepts: the second's concepts are drawn beside it."""
    bare = changed(MODEL, key="linear", concepts=[], by_concepts=False)
    film = scored_by(MODEL, first=bare)
    name = CONCEPTS[0][0]
    for shown, is_other in ((film, True), (scored_by(), False)):
        written = f"{name} ({PLAIN})" if is_other else name
        page = film_page([shown])
        assert written in {concept["name"] for concept in data_of(page)["rows"]["concepts"]}
        assert f'<th scope="col" class="n">{written}</th>' in page  # minute by minute
        assert f"<span>{written}</span>" in page  # the timeline
        assert (f"({PLAIN})" in film_figure(FilmView(shown, "f", Words("en"), top=5), 0, 60)) == is_other


@pytest.fixture
def judged(tmp_path, monkeypatch):
    """A film of two models, of levels and of a concept; its windows, and a function that judges them."""
    monkeypatch.chdir(tmp_path)
    known = {"task": "concept:Body", "negative": [], "positive": [], "levels": ["EN", "HN", "S"]}
    film = scored_by(changed(MODEL, key="body", concept="Body", **known))
    film.write(Path("a"))
    windows = choose_next([film], 10, blind=True)

    def judge(**judges):
        clips = []
        for who, concepts in judges.items():
            for place, clip in enumerate(windows):
                level = "S" if place % 2 else "EN"
                name = f"{who}-{clip.clip_id}"
                clips.append(replace(clip, clip_id=name, level=level, annotator=who, concepts=concepts))
        write_manifest(Manifest(tuple(clips), Path(), BOOK), Path("judged.csv"))
        return len(windows)

    return judge


def rate(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["film", "rate", "a", "judged.csv"])
    found = capsys.readouterr()
    return ended.value.code, found.out, found.err


def test_a_judge_who_names_no_concept_is_named_and_counted_whichever_model_is_last(judged, capsys):
    n = judged(AB=(), CD=("Body",))
    code, out, notes = rate(capsys)
    assert code == 0
    (note,) = [line for line in notes.splitlines() if "no concept" in line]
    assert f"left out {n} judgements of AB, who" in note
    assert "Body" in note
    assert "AB and CD would mark" in out or "AB and CD mark" in out  # by levels
    assert any("CD" in line and "AB" not in line and "Body" in line for line in out.splitlines())


def test_where_all_name_no_concept_the_model_of_levels_has_its_rate_all_the_same(judged, capsys):
    n = judged(AB=())
    code, out, notes = rate(capsys)
    assert code == 3
    assert "AB" in out
    assert "body: film" in notes  # of which model
    assert f"left out {n} judgements of AB, who" in notes
    assert "no window judged blindly that counts" in notes


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_desk_says_why_blind_judgements_of_a_concept_do_not_count(tmp_path, language):
    known = {"task": "concept:Body", "negative": [], "positive": [], "levels": ["EN", "HN", "S"]}
    film = scored_by(first=changed(MODEL, concept="Body", **known))
    opened = OpenFilm(0, film, Decisions(tmp_path, film, BOOK))
    judge_blindly(opened.decisions, *["S"] * 4, who="AB", in_all=10)
    words = Words(language)
    few = next_window(opened, "AB", 10, words, tell=True)["few"]
    assert words["counted_0"] in few
    why = words.say("why_no_concept", who="AB", concept={"en": "Body", "fr": "Corps"}[language])
    assert why in few
    assert "4" in few
