"""Of a film that several models scored each sentence is of one: it names it, and its conditions alone."""

import re
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pytest
from msgspec.structs import replace as changed

from obygaze.cli import main
from obygaze_features.manifest import Manifest, builtin_codebook, write_manifest
from obygaze_film.claims import LANGUAGES, Words, film_claims
from obygaze_film.claims import kinds as claim_kinds
from obygaze_film.commands.film_lines import lines_of_film
from obygaze_film.exchange import export
from obygaze_film.page import film_page
from obygaze_film.page.figures import film_figure
from obygaze_film.page.view import FilmView
from obygaze_film.windows_to_judge import choose_next
from obygaze_film.workspace.decisions import Decisions
from obygaze_film.workspace.open_film import OpenFilm
from obygaze_film.workspace.pages import next_window
from tests.film.page.invented import ten_minute_film
from tests.film.page.test_page import text_of
from tests.film.saying import data_of, heading_of
from tests.film.workspace.deciding import judge, judge_blindly

BOOK = builtin_codebook("obygaze12")
WITHOUT_WARNING, NO_BETTER_THAN_CHANCE, WITHOUT_EN, TRAINED_ON_FILM = "pcbm_lr", "chance", "narrow", "seen"
"""Keys of the models that scored `FILM_OF_FOUR_MODELS`."""

WARNINGS_OF = {
    WITHOUT_WARNING: set(),
    NO_BETTER_THAN_CHANCE: {"verdict_no_skill"},
    WITHOUT_EN: {"verdict_levels"},
    TRAINED_ON_FILM: {"verdict_trained"},
}
"""Key of each model of `FILM_OF_FOUR_MODELS` -> keys of the texts that warn of its scores."""

ALL_WARNINGS = set().union(*WARNINGS_OF.values())


def scored_by(*others, first=None):
    """Make a film that a model scored (`first`, else "pcbm_lr"), and `others` too, all with the same rows."""
    film = ten_minute_film()
    models = [first or film.model(), *others]
    table = pd.concat([film.table.assign(model=model.key) for model in models], ignore_index=True)
    return replace(film, record=changed(film.record, models=models), table=table)


MODEL = ten_minute_film().model()
FILM_OF_FOUR_MODELS = scored_by(
    changed(MODEL, key=NO_BETTER_THAN_CHANCE, no_skill=True),
    changed(MODEL, key=WITHOUT_EN, levels_left_out=["EN"]),
    changed(MODEL, key=TRAINED_ON_FILM, is_trained_on=True),
)
"""A film that four models scored, of which all but the first have a warning."""


def warnings_in(text, words):
    """Return the keys of the warnings that a text has."""
    return {key for key in ALL_WARNINGS if words.say(key, levels="EN") in text}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("model", "expected_warnings"), WARNINGS_OF.items(), ids=WARNINGS_OF)
def test_a_title_has_the_warnings_of_its_own_model_alone(language, model, expected_warnings):
    """Four models scored a film. All but one have a warning: chance, a missing level, or trained on the film.

    A title is of one model, called by its key such as "chance", and has its warning only: the texts are
    called "verdict_no_skill", "verdict_levels" and "verdict_trained".
    """
    heading = heading_of(FILM_OF_FOUR_MODELS, language, key=model)
    (title,) = [
        claim for claim in film_claims(FILM_OF_FOUR_MODELS, model) if isinstance(claim, claim_kinds.Title)
    ]

    assert warnings_in(heading, Words(language)) == expected_warnings
    assert title.who == (model,)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_warns_of_each_model_beside_its_rows(language):
    """Four models scored the film. The page's heading is of the first one, of which nothing is wrong.

    The others have a warning each, beside their rows below the heading: one is no better than chance, one was
    trained without the level EN, and one was trained on this film.
    """
    words = Words(language)
    page = film_page([FILM_OF_FOUR_MODELS], language=language)
    heading = re.search("<h1.*?</h1>", page)[0]
    assert warnings_in(heading, words) == set()
    assert warnings_in(text_of(page), words) == {"verdict_no_skill", "verdict_levels", "verdict_trained"}


@pytest.mark.parametrize("export_format", ["vtt", "csv", "eaf", "jsonld"])
@pytest.mark.parametrize(("model", "expected"), WARNINGS_OF.items(), ids=WARNINGS_OF)
def test_an_export_has_the_warnings_of_its_own_model_alone(model, expected, export_format):
    """Four models scored the film: one of which nothing is wrong, and three with a warning each.

    One of these is no better than chance, one was trained without the level EN, and one on this very film. An
    export is of one model: its text has that model's warning, and none of the others'.
    """
    text = export(FILM_OF_FOUR_MODELS, export_format, model=model)
    assert warnings_in(text, Words("en")) == expected


def test_the_terminal_says_which_model_each_warning_is_of():
    """Four models scored the film. The one without a warning, the first, is not named.

    The line is "TITLE · MODEL: warning · MODEL: warning · MODEL: warning".
    """
    words = Words("en")
    title_line, *_ = lines_of_film(FILM_OF_FOUR_MODELS, words)
    _title, by_chance, without_en, trained_on_film = title_line.split(" · ")

    assert by_chance.startswith("chance:")
    assert warnings_in(by_chance, words) == {"verdict_no_skill"}
    assert without_en.startswith("narrow:")
    assert warnings_in(without_en, words) == {"verdict_levels"}
    assert trained_on_film.startswith("seen:")
    assert warnings_in(trained_on_film, words) == {"verdict_trained"}


def test_the_terminals_first_line_is_the_title_alone_if_one_model_scored_the_film():
    """A single model scored the film, and it has no warning, so that no model need be named beside the title.

    The line of a film that several models scored would end with " · MODEL: warning".
    """
    film_of_one_model = scored_by()
    title_line, *_ = lines_of_film(film_of_one_model, Words("en"))
    assert title_line == heading_of(film_of_one_model)


def assert_page_calls_a_concept(film, name):
    """Find a concept by this name in the page's data, in its minutes and on its timeline."""
    page = film_page([film])
    assert name in {concept["name"] for concept in data_of(page)["rows"]["concepts"]}
    assert f'<th scope="col" class="n">{name}</th>' in page
    assert f"<span>{name}</span>" in page


def figure_of_first_minute(film):
    """Draw the figure of a film's first minute, with its five strongest concepts."""
    view = FilmView(film, "f", Words("en"), top=5)
    return film_figure(view, start_s=0, end_s=60)


def test_concepts_of_a_second_model_are_shown_with_its_name():
    """A film is scored by "linear", which decides and has no concepts, and by "pcbm_lr" (`MODEL`).

    Page and figure show the concepts of the second, such as "Type of shot", with the name of that model.
    """
    linear = changed(MODEL, key="linear", concepts=[], by_concepts=False)
    film = scored_by(MODEL, first=linear)

    assert_page_calls_a_concept(film, "Type of shot (pcbm_lr)")
    assert "(pcbm_lr)" in figure_of_first_minute(film)


def test_concepts_of_the_only_model_are_shown_without_its_name():
    """One model, "pcbm_lr", scored the film, so that its concepts, as "Type of shot", can be of no other."""
    film_with_one_model = scored_by()

    assert_page_calls_a_concept(film_with_one_model, "Type of shot")
    assert "(pcbm_lr)" not in figure_of_first_minute(film_with_one_model)


OF_BODY = {
    "concept": "Body",
    "task": "concept:Body",
    "negative": [],
    "positive": [],
    "levels": ["EN", "HN", "S"],
}
"""What a model of the concept Body has in a film's record."""


@pytest.fixture
def judge_ten_windows(tmp_path, monkeypatch):
    """A function that writes blind judgements of ten windows into `judged.csv`: AB=("Body",).

    Each judge names the same concepts in every window, and calls every other one S. The working directory
    has a film `a`, which was scored by a model of levels and by one of Body.
    """
    monkeypatch.chdir(tmp_path)
    film = scored_by(changed(MODEL, key="body", **OF_BODY))
    film.write(Path("a"))
    windows = choose_next([film], 10, blind=True)

    def write_judgements(**concepts_by_judge):
        clips = []
        for annotator, concepts in concepts_by_judge.items():
            for index, window in enumerate(windows):
                judgement = replace(
                    window,
                    clip_id=f"{annotator}-{window.clip_id}",
                    annotator=annotator,
                    level="S" if index % 2 else "EN",
                    concepts=concepts,
                )
                clips.append(judgement)
        write_manifest(Manifest(tuple(clips), Path(), BOOK), Path("judged.csv"))

    return write_judgements


class Ended(NamedTuple):
    """How a command ended: its exit code, what it printed, and its notes."""

    code: int
    out: str
    notes: str


def run_film_rate(capsys):
    """Run `film rate` on the film and its judgements."""
    with pytest.raises(SystemExit) as ended:
        main(["film", "rate", "a", "judged.csv"])
    printed = capsys.readouterr()
    return Ended(ended.value.code, printed.out, printed.err)


def test_a_judge_who_names_no_concept_is_left_out_of_its_share(judge_ten_windows, capsys):
    """AB and CD judged ten windows. AB names no concept in any, and so was not asked for concepts.

    The share of Body is CD's alone. Levels AB did give, so that the share of S is of both.
    """
    judge_ten_windows(AB=(), CD=("Body",))

    ended = run_film_rate(capsys)

    assert ended.code == 0
    (note,) = [line for line in ended.notes.splitlines() if "no concept" in line]
    assert "left out 10 judgements of AB, who" in note
    assert "Body" in note
    (share_of_body,) = [line for line in ended.out.splitlines() if "Body" in line and "CD" in line]
    assert "AB" not in share_of_body
    assert re.search("AB and CD (would )?mark", ended.out)


def test_without_named_concepts_only_the_model_of_levels_has_a_share(judge_ten_windows, capsys):
    """AB gave ten windows levels and no concepts: the model of levels has a share, and that of Body has none.

    Exit code 3 says that something was left out. The model of Body has the key "body".
    """
    judge_ten_windows(AB=())

    ended = run_film_rate(capsys)

    assert ended.code == 3
    assert "AB" in ended.out
    assert "body: film" in ended.notes
    assert "left out 10 judgements of AB, who" in ended.notes
    assert "no window judged blindly that counts" in ended.notes


@pytest.mark.parametrize(("language", "body"), [("en", "Body"), ("fr", "Corps")])
def test_the_desk_says_that_judgements_without_concepts_do_not_count(tmp_path, language, body):
    """A film is scored by a model of the concept Body. AB judged four of its windows S without a concept.

    So no window counts for a share of Body. With the next window the desk gives the reason why there is no
    share (`few`): that no window counts, as AB named no concept, and that this is so of AB's 4 judgements.
    """
    words = Words(language)
    film = scored_by(first=changed(MODEL, **OF_BODY))
    decisions = Decisions(tmp_path, film, BOOK)
    opened = OpenFilm(number=0, timeline=film, decisions=decisions)
    judge_blindly(decisions, "S", "S", "S", "S", annotator="AB", in_all=10)

    answer = next_window(opened, "AB", n_planned=10, words=words, tells_share=True)
    why_there_is_no_share = answer["few"]

    no_window_counts = words["counted_0"]
    ab_named_no_concept = words.say("why_no_concept", who="AB", concept=body)
    assert no_window_counts in why_there_is_no_share
    assert ab_named_no_concept in why_there_is_no_share
    assert "4" in why_there_is_no_share


def test_the_desk_counts_a_film_without_concepts_by_a_judge_who_names_concepts_in_another_open_film(
    tmp_path,
):
    """Two films, scored by a model of Body, are open. AB judges ten windows of each.

    In tt1 AB names Body in every window, and in tt2 no concept at all. So AB was asked for concepts, and
    those of tt2 count as without Body: the desk tells their share, as `film rate` does, and no reason why
    there is none (`few`).
    """
    open_films = []
    for number, movie in enumerate(("tt1", "tt2")):
        film = scored_by(first=changed(MODEL, **OF_BODY))
        film = replace(film, record=changed(film.record, movie=movie))
        folder = tmp_path / movie
        folder.mkdir()
        open_films.append(OpenFilm(number, film, Decisions(folder, film, BOOK)))
    tt1, tt2 = open_films
    for place, (start_s, end_s) in enumerate(tt1.decisions.windows[:10], start=1):
        judge(tt1.decisions, start_s, end_s, "S", annotator="AB", concepts=["Body"], place=place)
    judge_blindly(tt2.decisions, *["S"] * 10, annotator="AB", in_all=10)

    answer = next_window(tt2, "AB", n_planned=10, open_films=open_films)

    assert "few" not in answer
    assert "share" in answer
