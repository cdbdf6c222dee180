"""Groups of scored films: too few judged films are refused; films that cannot be compared are named."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import Manifest, read_manifest, write_manifest
from obygaze_film import compare_films
from obygaze_film.cells import cells_of
from obygaze_film.claims import LANGUAGES, Words
from obygaze_film.comparison import estimate_groups
from obygaze_film.errors import FilmError
from obygaze_film.film_groups import ALL, LEAST_FILMS, read_facts
from obygaze_film.group_report import comparison_report
from obygaze_film.judged_windows import needed_windows
from obygaze_film.notes import counted_message
from obygaze_film.page import side_by_side
from obygaze_film.scored_files import write_films
from obygaze_film.windows_to_judge import choose_next
from tests.command import obygaze
from tests.film.page.invented import invented_film
from tests.film.saying import sentence_on_groups

# --- scored films
# ---------------------------------------------------------------------------
N_FILMS, N_JUDGED = 14, 11


@pytest.fixture(scope="module")
def films():
    """Films tt00 to tt13 of 1995 to 2008: five of the 1990s and nine of the 2000s."""
    return [
        invented_film(f"tt{n:02}", f"Film {n}", year=1995 + n, n_rows=60, duration_s=1500, seed=n)
        for n in range(N_FILMS)
    ]


def judged_by_ab(clip):
    """AB calls the first windows of a draw S, the more the later the film: one of tt00, four of tt10."""
    film_number, place = int(clip.movie[2:]), int(clip.extras["place"])
    level = "S" if place <= 1 + film_number // 3 else "HN"
    return replace(clip, level=level, annotator="AB")


@pytest.fixture(scope="module")
def judged(films):
    """AB's judgements of ten windows of each of the first eleven films, tt00 to tt10."""
    windows = choose_next(films[:N_JUDGED], 10, blind=True)
    return Manifest(tuple(judged_by_ab(clip) for clip in windows), Path())


def test_judgements_behind_a_window_that_nobody_judged_are_said_to_be_left_out(films):
    windows = [judged_by_ab(clip) for clip in choose_next(films[:1], 12, blind=True)]
    with_a_gap = Manifest(tuple(clip for clip in windows if clip.extras["place"] != "11"), Path())
    found = compare_films(films, with_a_gap)
    (note,) = [note for note in found.notes if "drawn after" in note]
    assert note.startswith("tt00: left out 1 judgement drawn after place 11, which is not judged")
    in_french = Words("fr").again(note)
    assert in_french.startswith("tt00 : 1 jugement hors du compte")
    assert "tirés après place 11, qui n’est pas jugé" in in_french


def test_groups_of_scored_films_have_shares_with_intervals(films, judged):
    """By decade: five films of the 1990s, all judged, and nine of the 2000s, of which six are."""
    found = compare_films(films, judged, by="decade")
    assert [film.facts["year"] for film in found.films] == [str(1995 + n) for n in range(N_FILMS)]
    assert found.groups[["group", "n_films", "n_judged", "n_windows"]].to_numpy().tolist() == [
        ["1990s", 5, 5, 50],
        ["2000s", 9, 6, 60],
    ]
    assert (found.groups["low"] < found.groups["value"]).all()
    assert (found.groups["value"] < found.groups["high"]).all()


def test_what_the_judgements_of_a_group_are_worth_is_a_number_only_where_the_model_helps(films, judged):
    found = compare_films(films, judged, by="decade")
    samples = [film.sample for film in found.films]
    worths = [estimate.sample_size_ratio for estimate in estimate_groups([samples[:5], samples[5:]])]
    expected = [n * worth if worth > 1 else np.nan for n, worth in zip((50, 60), worths, strict=True)]
    assert found.groups["worth"].tolist() == pytest.approx(expected, nan_ok=True)


def test_what_the_model_expects_of_a_film_does_not_depend_on_who_was_sure_of_what(films, judged):
    clips = [replace(clip, level="NS") if clip.extras["place"] == "3" else clip for clip in judged]
    doubted = judged.with_clips(clips)
    expected = [[film.expected for film in compare_films(films, one).films] for one in (judged, doubted)]
    assert expected[0] == expected[1]


def test_a_comparison_says_by_what_films_are_grouped(films, judged):
    by_decade, ungrouped = compare_films(films, judged, by="decade"), compare_films(films, judged)
    assert (by_decade.by, ungrouped.by) == ("decade", ALL)
    assert "by decade" in comparison_report(by_decade).title
    assert " by " not in comparison_report(ungrouped).title


def test_films_of_which_more_is_judged_positive_by_the_year_have_a_trend_in_any_order(films, judged):
    found = compare_films(films, judged, by="decade", trend="year")
    earlier_less_later, by_year = found.changes.to_dict("records")
    assert earlier_less_later["low"] < earlier_less_later["value"] < 0
    assert 0 < by_year["value"] < by_year["high"]
    turned_round = Manifest(judged.clips[::-1], Path())
    again = compare_films(films[::-1], turned_round, by="decade", trend="year")
    assert again.groups.equals(found.groups)


@pytest.mark.parametrize("language", ["en", "fr"])
def test_a_group_of_which_one_film_has_a_positive_window_rests_on_it_and_says_so(films, judged, language):
    """As of a change: by the films that have any positive window, or lack any."""
    clips = [replace(clip, level="HN") if clip.movie not in {"tt02", "tt05", "tt06", "tt07"} else clip
             for clip in judged]  # fmt: skip
    found = compare_films(films, Manifest(tuple(clips), Path()), by="decade", trend="year")
    assert found.groups["group"].tolist() == ["1990s", "2000s"]
    rests = {"en": "rests on 1 film", "fr": "repose sur 1 film"}[language]
    assert [Words(language).again(note) for note in found.groups["note"]] == [rests, ""]
    sentence = sentence_on_groups(found, language)
    assert sentence.count(f"({rests})") == 1
    assert sentence.index(f"({rests})") < sentence.index("2000")
    assert side_by_side.comparison_page(found, language=language).count(f"<small>{rests}</small>") == 1
    assert "rests on 1 film" in str(comparison_report(found).blocks[0])


def test_too_few_judged_films_are_refused_with_those_to_judge(films, judged):
    """Of the 2000s three films are judged, and a share needs five: two more are named."""
    few = judged.with_clips(clip for clip in judged if clip.movie < "tt08")
    found = compare_films(films, few, by="decade", trend="year")
    later, trend = found.groups.iloc[1], found.changes.iloc[-1]
    assert later["n_judged"] == 3
    assert np.isnan(later["value"])
    named = [film.movie for film in films if film.movie in later["reason"]]
    assert len(named) == 2
    assert min(named) >= "tt08"
    assert np.isnan(trend["value"])
    assert "a rate needs 10 films" in trend["reason"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_films_whose_judgements_are_hidden_are_not_said_to_be_without_and_nobody_is_asked_to_judge_them(
    films, judged, language
):
    movies = [film.movie for film in films]
    compared = compare_films(films, judged.with_clips([]), hidden=movies)
    (reason,) = compared.groups["reason"]
    words = Words(language)
    known = {"films": counted_message("films_n", len(movies)), "least": LEAST_FILMS}
    assert words.again(reason) == words.again(counted_message("reason_hidden", len(movies), **known))
    assert not any(movie in words.again(reason) for movie in movies)


def test_a_comparison_in_which_nothing_is_judged_has_no_share_and_no_note_on_shares(films, judged):
    found, nothing = compare_films(films, judged, by="decade"), compare_films(films, Manifest((), Path()))
    assert nothing.groups["value"].isna().all()
    assert len(nothing.changes) == 0
    assert "%" not in sentence_on_groups(nothing)
    assert "%" in sentence_on_groups(found)
    how = "share of a group: estimated from its films together"
    assert any(note.startswith(how) for note in comparison_report(found).notes)
    assert not any(note.startswith(how) for note in comparison_report(nothing).notes)


def test_a_film_of_which_nine_windows_are_judged_counts_as_not_judged_and_is_named(films, judged):
    """What a share needs is said as `film rate` and the desk say it."""
    without_the_tenth = judged.with_clips(
        clip for clip in judged if (clip.movie, clip.extras["place"]) != ("tt00", "10")
    )
    found = compare_films(films, without_the_tenth, by="decade")
    assert found.groups["n_judged"].tolist() == [4, 6]
    (note,) = (note for note in found.notes if "tt00" in note)
    n_windows = int((cells_of(films[0]).content_s > 0).sum())
    needed = needed_windows(9, n_windows - 9, 10)
    assert needed in note
    assert Words("fr").again(needed) in Words("fr").again(note)


def test_a_film_under_two_names_is_refused(films, judged):
    twin = invented_film("TT00", year=1990, n_rows=60, duration_s=1500)
    with pytest.raises(FilmError, match="TT00"):
        compare_films([*films, twin], judged)
    one, other = (
        replace(film, record=structs.replace(film.record, source_sha256="a" * 64)) for film in films[:2]
    )
    with pytest.raises(FilmError, match="one video"):
        compare_films([one, other, *films[2:]], judged)


def test_films_that_cannot_be_grouped_are_left_out_and_named(films, judged):
    """The model was trained on tt99, the genre of tt03 is empty, and tt04 is in no row of the table."""
    trained_on = invented_film("tt99", year=1990, n_rows=60, duration_s=1500, trained_on=True)
    every = [*films, trained_on]
    facts = {film.movie: {"genre": "drama"} for film in every if film.movie != "tt04"}
    facts["tt03"]["genre"] = ""
    found = compare_films(every, judged, facts, by="genre")
    assert {film.timeline.movie for film in found.films}.isdisjoint({"tt99", "tt03", "tt04"})
    assert all(any(movie in note for note in found.notes) for movie in ("tt99", "tt03"))


def by_budget(films, *, scale=1):
    """Facts of films: their number as a budget; that of tt03 is not known."""
    facts = {film.movie: {"budget": str(scale * int(film.movie[2:]))} for film in films}
    facts["tt03"]["budget"] = ""
    return facts


def test_a_film_without_a_number_has_no_part_in_the_trend_and_stays_in_its_group(films, judged):
    found = compare_films(films, judged, by_budget(films), trend="budget")
    assert found.groups["n_films"].tolist() == [N_FILMS]
    assert any("tt03" in note for note in found.notes)
    assert not any("tt02" in note for note in found.notes)


def test_a_trend_is_by_one_of_its_number_and_by_ten_years(films, judged):
    (by_one,) = compare_films(films, judged, by_budget(films), trend="budget").changes.to_dict("records")
    by_tens = compare_films(films, judged, by_budget(films, scale=10), trend="budget").changes.iloc[-1]
    by_year = compare_films(films, judged, trend="year").changes.iloc[-1]
    assert (by_one["change"], by_year["change"]) == ("budget + 1", "10 years later")
    assert by_tens["value"] < by_one["value"] / 5
    assert by_year["value"] == pytest.approx(10 * by_one["value"], rel=0.2)  # tt03 has a year


def test_a_year_of_five_digits_or_of_a_season_has_no_decade(films, judged):
    facts = {"tt00": {"year": "20010"}, "tt01": {"year": "1995-6"}}
    found = compare_films(films, judged, facts, by="decade")
    assert any("tt00, tt01" in note for note in found.notes)


def test_films_of_two_models_are_refused(films, judged):
    record = films[0].record
    another_model = structs.replace(record.models[0], sha256="0" * 64)
    other = replace(films[0], record=structs.replace(record, movie="x", models=[another_model]))
    with pytest.raises(FilmError):
        compare_films([*films, other], judged)


def test_a_column_that_no_table_has_or_that_holds_no_numbers_is_refused(films, judged):
    with pytest.raises(FilmError):
        compare_films(films, judged, by="author")
    with pytest.raises(FilmError):
        compare_films(films, judged, trend="title")


UNREADABLE_YEARS = (
    "1960-09-08", "c. 1960", "1960 (US)", '"1,960"', "1960/61", "1960\u201361", "9/8/1960", "1960?", "'1960",
    "MCMLX", "60", "n/a", "1960.5", "inf",
)  # fmt: skip


def test_a_table_of_films_is_matched_by_title_and_names_what_has_no_match(films, tmp_path):
    path = tmp_path / "films.csv"
    path.write_text("title;genre\nFilm 1;drama\nElsewhere;comedy\n", encoding="utf-8")
    facts, notes = read_facts(path, films)
    assert facts["tt01"]["genre"] == "drama"
    assert [*facts] == ["tt01"]
    assert "Elsewhere" in notes[0]  # a row of no film
    assert "tt02" in notes[1]  # a film without a row


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("name,genre\na,b\n", ManifestError),
        ("movie,genre\ntt01,a\ntt01,b\n", FilmError),
        ("movie,genre\ntt01\n", ManifestError),
        ("movie,genre\ntt01,dra\x1bma\n", ManifestError),
        ("movie,genre\ntt09,\u202edrama\n", ManifestError),
        ("movie,ge\x07nre\ntt01,drama\n", ManifestError),
    ],
    ids=["no film", "two rows of a film", "no cell", "a control character", "turned round", "in a heading"],
)
def test_a_table_of_films_that_cannot_be_read_is_refused(films, tmp_path, text, error):
    (tmp_path / "films.csv").write_text(text, encoding="utf-8")
    with pytest.raises(error):
        read_facts(tmp_path / "films.csv", films)


@pytest.mark.parametrize("year", UNREADABLE_YEARS)
def test_a_year_that_may_be_another_is_refused(films, tmp_path, year):
    (tmp_path / "films.csv").write_text(f"title,year\nFilm 1,{year}\n", encoding="utf-8")
    with pytest.raises(FilmError):
        read_facts(tmp_path / "films.csv", films)


@pytest.mark.parametrize(
    ("rows", "matched", "note"),
    [
        ("title,year\nPsycho,1960\n", {}, "Psycho (1960) (did you mean 'Psycho (1998)'?)"),
        ("title\n2\nD\u00e9j\u00e0 vu\nDe\u0301ja\u0300 vu\n", {}, "2, "),
        ("title,year\nPsycho,1960\nPsycho,1997\n", {"tt02": "1997"}, "Psycho (1960)"),
        ("title,note\nPsycho (1998),x\nPsycho (1960),y\n", {"tt02": ""}, "Psycho (1960)"),
        ("My films,,\n\nTitle,Year,note\nPSYCHO,1998,x\n", {"tt02": "1998"}, ""),
        ("title;year;votes;sound\nPsycho;1998;1.234,5;5.1\n", {"tt02": "1998"}, ""),
        ("title,year\nPsycho,1998.0\n", {"tt02": "1998"}, ""),
        ("title,year\nPsycho,\uff11\uff19\uff19\uff18\n", {"tt02": "1998"}, ""),
        ("title,year\nPsycho (1998),1960\n", {}, "Psycho (1960)"),
        ("movie,year\nPsycho,1998\n", {"tt02": "1998"}, ""),
        ("movie,year\nPsycho,1960\n", {}, "Psycho (1960)"),
        ("movie,year\nTT2x,1998\n", {}, "did you mean 'tt02'"),
        ("title,release_year\nPsycho,1960\n", {"tt02": ""}, "title alone"),
        ("title,year\nPsycho,1998\nFargo,\\N\nLost,2010\u20132012\n", {"tt02": "1998"}, "Fargo, Lost"),
    ],
)
def test_a_title_is_that_of_a_film_of_its_year(films, tmp_path, rows, matched, note):
    record = structs.replace(films[2].record, title="Psycho", year=1998)
    (tmp_path / "films.csv").write_text(rows, encoding="utf-8")
    facts, notes = read_facts(tmp_path / "films.csv", [replace(films[2], record=record)])
    assert {movie: cells.get("year", "") for movie, cells in facts.items()} == matched
    assert note in "".join(notes)
    assert all(cells.get("votes", "1234.5") == "1234.5" for cells in facts.values())


def test_a_table_of_all_films_there_are_names_a_few_that_are_not_scored(films, tmp_path):
    record = structs.replace(films[2].record, title="Psycho", year=1998)
    others = "".join(f"Psycho {n},1998\n" for n in range(5000))
    (tmp_path / "films.csv").write_text(f"title,year\n{others}Psycho,1998\n", encoding="utf-8")
    facts, (note,) = read_facts(tmp_path / "films.csv", [replace(films[2], record=record)])
    assert [*facts] == ["tt02"]
    assert "5000" in note
    assert len(note) < 5000
    assert "did you mean" not in note  # the only film has its row


def test_cells_that_look_alike_are_one_group_and_those_that_differ_by_capitals_are_named(films, judged):
    written = ["Com\u00e9die", "Come\u0301die", "Com\u00e9die \n", "  Com\u00e9die"]
    facts = {film.movie: {"genre": written[n % 4]} for n, film in enumerate(films)}
    assert compare_films(films, judged, facts, by="genre").groups["group"].tolist() == ["Com\u00e9die"]
    facts[films[0].movie]["genre"] = "com\u00e9die"
    found = compare_films(films, judged, facts, by="genre")
    assert len(found.groups) == 2
    assert any("Com\u00e9die" in note and "com\u00e9die" in note for note in found.notes)


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "1e300", "19x0", "0,5"])
def test_what_is_no_number_of_a_trend_is_refused(films, judged, text):
    facts = {film.movie: {"x": "1" if n else text} for n, film in enumerate(films)}
    with pytest.raises(FilmError, match=f"column x: '{text}'"):
        compare_films(films, judged, facts, trend="x")


def test_films_that_are_judged_and_not_scored_are_named(films, judged):
    clips = [replace(clip, movie="tt01x") if clip.movie == "tt01" else clip for clip in judged]
    found = compare_films(films, replace(judged, clips=tuple(clips)))
    assert sum("(tt01x (did you mean 'tt01'?))" in note for note in found.notes) == 1


def test_judgements_are_of_a_film_however_they_spell_it(films, judged):
    spelled = judged.with_clips(replace(clip, movie=clip.movie.removeprefix("tt0")) for clip in judged)
    assert compare_films(films, spelled).groups.equals(compare_films(films, judged).groups)


def test_that_nothing_is_compared_is_an_exit_code(films, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_films(films[:2], "scored")
    Path("films.csv").write_text("movie,genre\nelsewhere,a\n", "utf-8")
    assert obygaze("film", "compare", "scored", "--films", "films.csv", "--by", "genre") == 3


BY_GENRE_AND_YEAR = (
    *("film", "compare", "scored", "--films", "films.csv"),
    *("--by", "genre", "--trend", "year"),
)


@pytest.fixture
def scored_and_judged(films, judged, tmp_path, monkeypatch):
    """Be in a folder with the scored films, judgements beside each judged one, and a table of two genres."""
    monkeypatch.chdir(tmp_path)
    write_films(films, "scored")
    for film in films[:N_JUDGED]:
        own = replace(judged, clips=tuple(clip for clip in judged if clip.movie == film.movie))
        write_manifest(own, Path("scored", film.movie, "judgements.csv"))
    rows = [f"{film.movie},{'ab'[number % 2]}\n" for number, film in enumerate(films)]
    Path("films.csv").write_text("movie,genre\n" + "".join(rows), "utf-8")


@pytest.mark.long
@pytest.mark.usefixtures("scored_and_judged")
def test_the_command_writes_the_same_page_and_tables_twice():
    for name in ("one", "two"):
        assert obygaze(*BY_GENRE_AND_YEAR, "--html", f"{name}.html", "--out", name) == 0
    assert Path("one.html").read_bytes() == Path("two.html").read_bytes()
    assert Path("one/film-compare.csv").read_bytes() == Path("two/film-compare.csv").read_bytes()


@pytest.mark.long
@pytest.mark.usefixtures("scored_and_judged")
def test_the_figure_of_years_is_replaced_with_the_output_that_it_is_part_of():
    assert obygaze(*BY_GENRE_AND_YEAR, "--out", "one") == 0
    figure = Path("one/years.svg").read_bytes()
    assert obygaze(*BY_GENRE_AND_YEAR, "--out", "one", "--force") == 0
    assert Path("one/years.svg").read_bytes() == figure


@pytest.mark.long
@pytest.mark.usefixtures("scored_and_judged")
def test_the_commands_page_has_a_row_for_each_film_by_year(films):
    assert obygaze(*BY_GENRE_AND_YEAR, "--html", "page.html") == 0
    page = Path("page.html").read_text("utf-8")
    assert page.count('class="row film"') == N_FILMS
    places = [page.index(f"{film.record.year} {film.record.title}<") for film in films]
    assert places == sorted(places)


@pytest.mark.long
@pytest.mark.usefixtures("scored_and_judged")
def test_the_command_refuses_a_page_that_is_there_and_a_column_that_is_not():
    assert obygaze(*BY_GENRE_AND_YEAR, "--html", "page.html") == 0
    assert obygaze(*BY_GENRE_AND_YEAR, "--html", "page.html") == 1
    assert obygaze("film", "compare", "scored", "--by", "director") == 1


@pytest.mark.long
@pytest.mark.usefixtures("scored_and_judged")
def test_the_command_takes_judgements_that_are_not_beside_their_films(films, capsys):
    """Without any the command has nothing to say: exit code 3."""
    judged_movies = [film.movie for film in films[:N_JUDGED]]
    for movie in judged_movies:
        Path("scored", movie, "judgements.csv").rename(f"{movie}.csv")
    assert obygaze("film", "compare", "scored", "--json") == 3
    options = [word for movie in judged_movies for word in ("--judged", f"{movie}.csv")]
    capsys.readouterr()
    assert obygaze(*BY_GENRE_AND_YEAR, *options, "--html", "new/folder/page.html") == 0
    assert Path("new/folder/page.html").is_file()
    assert str(Path("new/folder/page.html")) in capsys.readouterr().err
    assert len(read_manifest(Path("tt00.csv")).clips) == 10  # the judgements are as they were


def test_who_judged_each_group_is_named_and_groups_of_different_judges_have_no_difference(films, judged):
    """AB judged all; then who judged the 1990s, tt00 to tt04, gave no name, and CD judged the 2000s."""
    found = compare_films(films, judged, by="decade", trend="year")
    assert found.groups["judges"].tolist() == ["AB", "AB"]
    assert sentence_on_groups(found).startswith("AB ")
    assert not found.changes["reason"].any()
    clips = [replace(clip, annotator="CD" if int(clip.movie[2:]) >= 5 else "") for clip in judged]
    divided = compare_films(films, Manifest(tuple(clips), Path()), by="decade", trend="year")
    assert divided.groups["judges"].tolist() == ["a judge without a name", "CD"]
    assert "CD" in sentence_on_groups(divided)
    assert divided.changes["reason"].astype(bool).tolist() == [True, False]
    assert divided.groups["value"].tolist() == found.groups["value"].tolist()


def test_rows_of_all_tables_of_a_comparison_have_places_of_their_own(films, judged):
    assert comparison_report(compare_films(films, judged, by="decade")).data.index.is_unique


def test_the_page_says_the_share_of_every_group_that_is_estimated(films, judged):
    found, words = compare_films(films, judged, by="decade"), Words("en")
    page = side_by_side.comparison_page(found)
    groups = found.groups.dropna(subset="value")
    shares = groups[["value", "low", "high"]].map(words.share).to_numpy().tolist()
    assert len(shares) > 0
    assert re.findall('class="n">([^–<]+) \\[([^<]+)–([^<]+)\\]<', page) == [tuple(row) for row in shares]
    assert found.positive.text == "S"
    french = side_by_side.comparison_page(found, language="fr")
    assert "1990s minus 2000s" in page
    assert "années 1990 moins années 2000" in french
    assert "minus" not in french
    body = french.partition("<body")[2]
    assert re.findall(r"\d0s\b|\bmodel\b", re.sub("<[^>]*>", " ", body)) == []
    assert "all films" not in side_by_side.comparison_page(compare_films(films, judged), language="fr")


def headings_of(report):
    return {block.title: list(block.headers) for block in report.blocks}


def test_tables_have_no_column_in_which_nothing_can_stand(films, judged):
    grouped = headings_of(comparison_report(compare_films(films, judged, by="decade", trend="year")))
    assert "none" not in grouped["Changes"]
    assert "decade" in grouped["Films"]
    alone = headings_of(comparison_report(compare_films(films, judged)))
    assert "all films" not in alone["Films"]


@pytest.mark.parametrize(("language", "column"), [("en", "group"), ("fr", "groupe"), ("fr", "Groupes")])
def test_groups_by_a_column_that_is_called_group_are_called_groups(films, judged, language, column):
    found = compare_films(films, judged, by="decade")
    page = side_by_side.comparison_page(replace(found, by=column), language=language)
    heading = {"en": "Groups", "fr": "Groupes"}[language]
    assert f"<h2>{heading}</h2>" in page
    assert "<h2>Groups by decade</h2>" in side_by_side.comparison_page(found)


def test_a_film_that_the_model_has_no_rate_of_is_expected_to_have_none():
    films = [
        invented_film("a", year=1990),
        invented_film("b", year=1991, unlike_parts=((0.0, 1.0),)),
        invented_film("c", year=2001),
    ]
    found = compare_films(films, Manifest((), Path()))
    alone = [film.expected for film in found.films]
    assert [np.isnan(rate) for rate in alone] == [False, True, False]
    assert found.groups["expected"].item() == pytest.approx((alone[0] + alone[2]) / 2)
    page = side_by_side.comparison_page(found)
    assert page.count('class="row film"') == 3
    assert "nan" not in page.lower()
    assert np.isnan(compare_films(films[1:2], Manifest((), Path())).groups["expected"].item())


def test_a_machines_labels_in_a_models_place_have_a_page_too(films, judged):
    every = choose_next(films, 10**6, blind=True)
    labels = [
        replace(clip, level="S" if place % 3 else "HN", annotator="vlm") for place, clip in enumerate(every)
    ]
    found = compare_films(films, judged, labels=Manifest(tuple(labels), Path()))
    page = side_by_side.comparison_page(found)
    assert found.model == "vlm"
    assert page.count('class="row film"') == len(films)
