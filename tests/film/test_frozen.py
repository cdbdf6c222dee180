"""Numbers, drawings and choices of an invented film are those of the frozen files, whatever the words are.

A change that means to change them deletes the file and runs this test once: it writes the file anew, and
fails. What differs is read in the review.
"""

import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from msgspec import to_builtins
from msgspec.structs import replace as changed

from obygaze.cli import main
from obygaze_features.io import sha256_of
from obygaze_features.manifest import Clip, Manifest, builtin_codebook, write_manifest
from obygaze_film import evaluation
from obygaze_film.claims import words as words_module
from obygaze_film.exchange import export
from obygaze_film.judged_rate import FilmRates, correct_rate
from obygaze_film.page import Owned, film_page
from obygaze_film.score import score_film
from obygaze_film.segments import with_rounded_lists
from obygaze_film.windows_to_judge import choose_next
from obygaze_models.report import asset
from tests.film.films import film_store, shots_of
from tests.film.page.invented import PLANTED, fake_scored_film, with_model

SMALL = {"duration_s": 540.0, "n_rows": 40}
"""Of invented films: nine minutes."""

BOOK = builtin_codebook("obygaze12")


def assert_equals_snapshot(name, text):
    """Check that a text is that of frozen/NAME.txt; write this file, and fail, where it is not there."""
    path = Path(__file__).parent / "frozen" / f"{name}.txt"
    if not path.exists():
        path.write_text(text, encoding="utf-8")
        pytest.fail(f"{path} is new")
    assert text == path.read_text(encoding="utf-8")


LONG_DECIMAL = re.compile(r"\d+\.\d{6,}")

NUMBER = re.compile(r"[-+−<]?\d[\d:,]*\.?\d*(?:e-\d+)?")
"""A number, also `<1`, `0:01:30`, `1,000` and `1.5e-07`."""


def numbers_of_lines(text):
    """Keep the numbers of each line, long ones rounded to six digits, without the words, which may change."""
    lines = []
    for line in text.splitlines():
        rounded = LONG_DECIMAL.sub(lambda decimal: f"{float(decimal[0]):.6g}", line)
        numbers = NUMBER.findall(rounded)
        if numbers:
            lines.append(" ".join(numbers))
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def films():
    """Films of all kinds: whole, withheld, trained on, without calibration, without a bracket."""
    return [
        film_of_two_models(),
        film_without_share(),
        film_trained_on(),
        film_without_calibration(),
        film_without_bracket(),
    ]


def film_of_two_models():
    """A whole film by a model of concepts, and by one without, whose p is the first one's p_low."""
    film = fake_scored_film("tt01", "A", year=2009, traced=True, **SMALL)
    second = changed(film.model(), key="linear", title="L", concepts=[], by_concepts=False)
    of_first = film.table.assign(flags=["bars;short", *film.table["flags"][1:]])
    of_second = film.table.assign(model="linear", p=film.table["p_low"])
    table = pd.concat([of_first, of_second], ignore_index=True)
    return replace(film, record=changed(film.record, models=[film.model(), second]), table=table)


def film_without_share():
    """A film of which .3 is unlike training, so that no share is expected, by a model with few facts."""
    film = fake_scored_film("b", "B", year=None, unlike_parts=((0.0, 0.3),), **SMALL)
    windows_without_step = changed(film.record.windows, hop_s=None)
    film = replace(film, record=changed(film.record, windows=windows_without_step))
    metrics = [{"metric": "auc", "movie_mean": 0.6, "n_movies": 9}]
    return with_model(film, clip_s=60.0, metrics=metrics, licence="", human=None)


def film_trained_on():
    """A film that its model was trained on, in another codebook: it has no share, though all is judged."""
    film = fake_scored_film(
        "c/d",
        "C",
        seed=3,
        trained_on=True,
        codebook="violence",
        levels=(("calm",), ("violent", "gore")),
        **SMALL,
    )
    refused = film_without_share().model().rate
    return with_model(film, rate=changed(refused, unreliable=0.0))


def film_without_calibration():
    """A film by a model without concepts that gives no probability, and so has no threshold and no share."""
    film = fake_scored_film("e", "E", concepts=(), seed=4, **SMALL)
    refused = film_without_share().model().rate
    return with_model(film, calibration=None, threshold_p=None, metrics=[], rate=refused)


def film_without_bracket():
    """A film whose expected share has no bracket."""
    film = fake_scored_film("f", "F", year=1989, seed=5, **SMALL)
    return with_model(film, rate=changed(film.model().rate, bracket_low=None, bracket_high=None))


def judgement_by(annotator, clip, *, is_sure):
    """Let an annotator call a clip S (Sure) or EN (Easy Negative)."""
    level = "S" if is_sure else "EN"
    return replace(clip, clip_id=f"{annotator}-{clip.clip_id}", level=level, annotator=annotator)


def planted_spans_s():
    """Return start and end of each planted passage: shares of a film of 540 s, in seconds."""
    return [(SMALL["duration_s"] * start, SMALL["duration_s"] * end) for start, end in PLANTED]


@pytest.fixture(scope="module")
def blind_judgements(films):
    """Blind judgements of the first film: AB calls what meets a planted passage S, CD only after 100 s."""
    by_ab, by_cd = [], []
    for window in choose_next(films[:1], 10, blind=True):
        meets_passage = any(
            window.start_s < end_s and start_s < window.end_s for start_s, end_s in planted_spans_s()
        )
        is_late = window.start_s > 100
        by_ab.append(judgement_by("AB", window, is_sure=meets_passage))
        by_cd.append(judgement_by("CD", window, is_sure=meets_passage and is_late))
    return Manifest((*by_ab, *by_cd), Path(), BOOK)


@pytest.fixture
def texts_are_names(monkeypatch):
    """Replace each text of pages by its name and the names of its fields, as "shares_1 {n} {share}".

    So a snapshot of a page does not change with its words. Signs alone, as of the decimal point, stay.
    """

    def asset_with_names(*place):
        texts = tomllib.loads(asset(*place))
        lines = []
        for key, text in texts.items():
            names = " ".join([key, *re.findall(r"{\w*}", text)])
            has_words = re.search("[a-z]{2}", text)
            lines.append(f"{key} = {json.dumps(names if has_words else text)}")
        return "\n".join(lines)

    monkeypatch.setattr(words_module, "asset", asset_with_names)
    words_module.texts_of.cache_clear()
    yield
    words_module.texts_of.cache_clear()


def values_of_attributes(tag):
    """Return the values of a tag's attributes, in spaces: " a.css print " of <link href="a.css" ...>."""
    values = re.findall('"([^"]*)"', tag[0])
    return " ".join(["", *values, ""])


def without_markup(page):
    """Keep the texts of a page, and of its tags the values of attributes; without scripts and styles."""
    page = re.sub(r"<meta[^>]*>|<style.*?</style>|<script.*?</script>", "", page, flags=re.DOTALL)
    text = re.sub("<[^>]*>", values_of_attributes, page)
    return [" ".join(line.split()) for line in text.splitlines()]


def lines_of_data(page):
    """Write what the scripts of a page read, one value a line."""
    lines = []
    for data in re.findall('class="data">(.*?)</script>', page, re.DOTALL):
        film = json.loads(data)
        lines += [f"{key}: {on_one_line(value)}" for key, value in film.items() if key != "passages"]
        lines += [f"passage: {on_one_line(passage)}" for passage in film["passages"]]
    return lines


def rates_of_first_two(films, blind_judgements):
    """Give the first two films a rate from judgements, as what belongs to a film beside its scores."""
    rate, _notices = correct_rate(films[0], blind_judgements)
    rate = changed(rate, high=0.6)  # where the scale of a figure ends
    rate_without_worth = changed(rate, worth=None)
    return {"tt01": Owned([FilmRates((rate,))]), "b": Owned([FilmRates((rate_without_worth,))])}


@pytest.mark.long
@pytest.mark.usefixtures("texts_are_names")
@pytest.mark.parametrize("n_films", [1, 2, 5])
def test_a_page_is_as_in_its_snapshot_but_for_words(films, blind_judgements, n_films):
    """A page of 1, 2 or 5 invented films has the same texts and numbers as when it was frozen.

    They are kept in a file, frozen/page-N.txt, with the data that the page's scripts read. As words may
    change, each text is replaced by its name. The films are called A, B, C, E and F; pages of several films
    also have rates by judges of the first two.
    """
    rates_by_film = {} if n_films == 1 else rates_of_first_two(films, blind_judgements)

    page = film_page(films[:n_films], top=6, owned=rates_by_film)

    lines_of_texts = [line for line in without_markup(page) if line]
    text = "\n".join(lines_of_texts)
    strongest_passage = films[0].segments().iloc[0]
    assert f"{strongest_passage['p']:.2f}" in text
    for title in ["A", "B", "C", "E", "F"][:n_films]:
        heading_of_film = f"d-name {title} "  # its class and its text
        assert heading_of_film in text
    number_that_is_missing = r"\bNone\b|\bnan\b"
    assert not re.search(number_that_is_missing, text)
    lines = [*lines_of_texts, *lines_of_data(page)]
    assert_equals_snapshot(f"page-{n_films}", "\n".join(lines))


PACKED_ROWS = re.compile(r'"[\w+/]{60,}=*"')
"""A long text in base64, in quotes."""


def digest_of_packed(packed):
    """Return a short digest in place of packed rows."""
    digest = sha256_of(packed[0].encode())[:12]
    return f'"sha256 {digest}"'


def on_one_line(value):
    """Write data as JSON on one line, with digests in place of packed rows, which would fill pages.

    What they unpack to is tested elsewhere.
    """
    return PACKED_ROWS.sub(digest_of_packed, json.dumps(value, ensure_ascii=False))


def test_the_numbers_of_an_export_are_as_in_its_snapshot(films, export_format):
    """The file frozen/FORMAT.txt has the numbers of each line of two exported films, without the words.

    Of the first film a share is expected, and of the second one none.
    """
    with_share, without_share, *_ = films
    assert with_share.rate().value is not None
    assert without_share.rate().value is None

    numbers = ""
    for film in (with_share, without_share):
        numbers += numbers_of_lines(export(film, export_format, top=6, rate=25))

    assert_equals_snapshot(export_format, numbers)


@pytest.mark.parametrize("rows_are", ["shots", "steps"])
def test_scores_segments_and_rates_are_as_in_their_snapshot(trained_models, tmp_path, rows_are):
    """A gun is planted from 20 to 45 s of a film of 100 s, and two windows, from 44 to 56 s, failed.

    Scores, passages and expected shares are those in a file, frozen/scores-shots.txt or -steps, to two
    decimals, as models that are fitted on another machine differ in later ones. Rows are the film's shots,
    or steps of equal length.
    """
    store = film_store(tmp_path, "x", end_s=100.0, planted=((20.0, 45.0),), failed=["x-0012", "x-0013"])
    models = [trained_models.paths["pcbm_lr"], trained_models.paths["bank"]]
    shots = shots_of("x", end_s=100.0) if rows_are == "shots" else None

    film = score_film(store, models, shots=shots)

    passages = with_rounded_lists(film.segments())
    strongest_passage = passages.iloc[0]
    assert strongest_passage["start_s"] == pytest.approx(20, abs=0.1)  # where the nearest row begins
    assert strongest_passage["end_s"] > 45
    assert film.record.windows.n_missing == 2

    expected_shares = pd.DataFrame([to_builtins(model.rate) | model.flags for model in film.record.models])
    numbers = ""
    for table in (film.table, passages, expected_shares):
        numbers += numbers_of_lines(table.round(2).to_csv())
    assert_equals_snapshot(f"scores-{rows_are}", numbers)


def passages_marked_by(annotator, movie, *, n_passages, late_s=0):
    """Let an annotator mark the first planted passages of a film, each `late_s` seconds late."""
    clips = []
    for number, (start_s, end_s) in enumerate(planted_spans_s()[:n_passages]):
        clip_id = f"{movie.replace('/', '')}-{number}"  # an id may have no slash, as the film c/d has
        clip = Clip(clip_id, movie, start_s=start_s + late_s, end_s=end_s + late_s)
        clips.append(judgement_by(annotator, clip, is_sure=True))
    return clips


def numbers_of_evaluation(evaluated):
    """Return the numbers of an evaluation's tables and of its report, line by line."""
    text = evaluated.summary.to_csv() + evaluated.by_film.to_csv()
    for table in evaluation.evaluation_report(evaluated).blocks:
        for row in table.rows:
            text += f"{row}\n"
    return numbers_of_lines(text)


@pytest.mark.long
def test_an_evaluation_is_as_in_its_snapshot(films):
    """AB marks five passages of each of three films, and CD the first four of them, six seconds later.

    All numbers of the evaluation, of models and people, are those in the file frozen/evaluation.txt. One of
    them is known by hand: how well starts of passages agree (`boundary_f1`). No start of CD is within 5 s of
    one of AB, and four are within 15 s: F1 is 2 * 4 / (5 + 4).
    """
    of_two_models, without_share, _trained_on, _without_calibration, without_bracket = films
    annotated_films = [of_two_models, without_share, without_bracket]
    clips = []
    for film in annotated_films:
        clips += passages_marked_by("AB", film.movie, n_passages=5)
        clips += passages_marked_by("CD", film.movie, n_passages=4, late_s=6)
    marks = Manifest(tuple(clips), Path(), BOOK)

    few_shifts = 20  # for the null: enough for a snapshot, and quick
    evaluated = evaluation.evaluate_films(annotated_films, marks, n_shifts=few_shifts)

    cd_beside_ab = evaluated.by_film.query("truth == 'AB' and who == 'human: CD'")
    in_first_film = cd_beside_ab[cd_beside_ab["movie"] == of_two_models.movie]
    value_of_metric = in_first_film.set_index("metric")["value"]
    assert value_of_metric["boundary_f1_5s"] == 0
    assert value_of_metric["boundary_f1_15s"] == pytest.approx(2 * 4 / (5 + 4))
    assert_equals_snapshot("evaluation", numbers_of_evaluation(evaluated))


def test_windows_to_judge_and_a_rate_are_as_in_their_snapshot(films, blind_judgements):
    """AB and CD judged ten of the eleven windows of the first of several films, and call eight of them alike.

    Whoever began to judge a film must get the same windows from a later version, and the same rate: ids,
    times and places of windows, and the rate, are those in the file frozen/judgements.txt.
    """
    first, second, _trained_on, fourth, _without_bracket = films

    windows_of_three_films = choose_next([fourth, first, second], 12)
    windows_left_of_first = choose_next([first], 9, judged=list(blind_judgements))
    rate_of_both, _notices = correct_rate(first, blind_judgements)

    assert len(windows_of_three_films) == 12
    assert len(windows_left_of_first) == 1
    assert rate_of_both.annotators == ["AB", "CD"]
    assert rate_of_both.n == 10
    (agreement_of_ab_and_cd,) = rate_of_both.agreement
    assert agreement_of_ab_and_cd.alike == 8

    text = ""
    for window in (*blind_judgements, *windows_of_three_films, *windows_left_of_first):
        text += f"{window.clip_id} {window.start_s} {window.end_s} {window.extras}\n"
    text += str(to_builtins(rate_of_both, enc_hook=str))
    assert_equals_snapshot("judgements", numbers_of_lines(text))


@pytest.fixture
def folder_of_films(films, blind_judgements, tmp_path, monkeypatch):
    """The working folder: a scored film a, its judgements by AB and CD, stores x and y, and facts of y.

    The stores have windows of 8 and 5 s; the models were trained on clips of 4 s.
    """
    monkeypatch.chdir(tmp_path)
    films[0].write(Path("a"))
    write_manifest(blind_judgements, Path("judged.csv"))
    film_store(Path(), "x", end_s=100.0, window_s=8.0)
    film_store(Path(), "y", end_s=100.0, window_s=5.0)
    Path("facts.csv").write_text("movie,title,year\ny,Y 2,1931\n", encoding="utf-8")


@pytest.mark.long
@pytest.mark.usefixtures("folder_of_films")
def test_the_numbers_that_commands_print_are_as_in_their_snapshot(trained_models, capsys):
    """The working folder holds a scored film a, two stores of films, x and y, and judgements of the film a.

    AB and CD judged ten windows of it and call eight alike. The numbers of each line that seven commands
    print are those in the file frozen/commands.txt, whatever the words are.
    """
    pcbm = trained_models.paths["pcbm_lr"]
    bank = trained_models.paths["bank"]
    for command in (
        "rate a judged.csv",
        "next a --n 7 --out next.csv",
        f"score {pcbm} x --out x-scored",
        f"score {pcbm} y --films facts.csv --out y-scored",
        f"score {bank} y --out bank",
        "report y-scored --out new/pages/1.html",
        "export y-scored --as edl --out new/lists/2.edl",
    ):
        with pytest.raises(SystemExit) as ended:
            main(["film", *command.split()])
        assert not ended.value.code  # None or 0: it succeeded

    printed = capsys.readouterr().out
    assert "AB and CD: 8 windows of 10 alike" in " ".join(printed.split())
    assert Path("new/pages/1.html").exists()
    assert_equals_snapshot("commands", numbers_of_lines(printed))
