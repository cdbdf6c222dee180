"""What people decide: files that are read back, written whole, and taken back; the interval at any time."""

import errno

import numpy as np
import pytest

from obygaze_features import io
from obygaze_features.errors import ObygazeError
from obygaze_features.manifest import builtin_codebook, import_spans
from obygaze_film import Timeline
from obygaze_film.judged_rate import Cells
from obygaze_film.windows_to_judge import choose_next
from obygaze_film.workspace.anytime import STAKES, anytime_interval
from obygaze_film.workspace.decisions import JUDGEMENTS, NOTES, PASSAGES, Decisions
from obygaze_film.workspace.pages import OpenFilm, next_window, read_page
from tests.files import rows_of
from tests.film.films import scored_film
from tests.film.page.invented import invented_film, with_model
from tests.planted_models import codebook


@pytest.fixture
def place(tmp_path, trained):
    folder, timeline = scored_film(tmp_path, trained, "tt1", end_s=120.0)
    return folder, timeline, codebook(tmp_path)


def test_decisions_are_read_back_as_judgements_of_the_film(place):
    folder, film, book = place
    made = Decisions(folder, film, book)
    window = choose_next([film], 1, blind=True)[0]
    made.judge(window.start_s, window.end_s, "violent", annotator=" A  B ", concepts=["Gun"], place=1)
    made.judge(10, 20, "calm", annotator="=cmd()")
    made.keep_passage(30, 41.5, "violent", annotator="AB", origin="passage 2")
    made.note(30, 41.5, "why\nhere", annotator="AB")
    imported = import_spans(
        [folder / JUDGEMENTS, folder / PASSAGES], folder, "judgements", codebook=book
    ).manifest
    by_span = {(clip.start_s, clip.end_s): clip for clip in imported}
    blind = by_span[window.start_s, window.end_s]
    assert (blind.level, blind.concepts, blind.annotator) == ("violent", ("Gun",), "A B")
    assert (blind.extras["seen_score"], blind.extras["place"]) == ("0", "1")
    assert by_span[10, 20].extras["judgement"] == "disagree"
    assert (blind.extras["draw"], by_span[10, 20].extras["draw"]) == ("random", "")
    assert by_span[10, 20].extras["seen_score"] == by_span[30, 41.5].extras["seen_score"] == "1"
    assert [row["note"] for row in rows_of(folder / NOTES)] == ["why here"]
    again = Decisions(folder, film, book)
    assert again.rows == made.rows
    assert Timeline.read(folder).movie == "tt1"


def test_the_last_judgement_of_a_span_stays_and_decisions_are_taken_back_in_turn(place):
    made = Decisions(*place)
    made.judge(10, 20, "calm", annotator="AB")
    made.judge(10, 20, "violent", annotator="AB")
    made.judge(10, 20, "calm", annotator="CD")
    assert [(row["annotator"], row["level"]) for row in made.rows[JUDGEMENTS]] == [
        ("AB", "violent"),
        ("CD", "calm"),
    ]
    assert [made.undo() for _ in range(4)] == [True, True, True, False]
    assert made.rows[JUDGEMENTS] == Decisions(*place).rows[JUDGEMENTS] == []


def test_concepts_that_two_decisions_share_are_named_when_the_files_are_opened_again(place):
    made = Decisions(*place)
    for start in (10, 30, 50):
        made.judge(start, start + 5, "violent", annotator="AB", concepts=["Gun"] if start < 50 else [])
    made.keep_passage(70, 75, "violent", annotator="AB", concepts=["Gun"])
    assert made.notices == []
    (notice,) = Decisions(*place).notices
    assert notice.startswith(f"{place[0] / JUDGEMENTS}: 1 decision ")
    assert notice.endswith(" line 3")


@pytest.mark.parametrize(("start", "end"), [(-0.1, 8), (8, 8), (9, 8), (100, 121.1)])
def test_a_decision_is_of_a_span_of_the_film(place, start, end):
    """Players round the end of a film, by less than a second."""
    folder, film, book = place
    whole_s = film.record.duration_s
    made = Decisions(folder, film, book)
    made.judge(whole_s - 20, whole_s + 0.9, "calm", annotator="AB")
    with pytest.raises(ObygazeError):
        made.judge(start, end if end < 100 else whole_s + 1.1, "calm", annotator="AB")
    assert len(made.rows[JUDGEMENTS]) == 1


def test_what_other_tools_wrote_stays(place):
    folder, film, book = place
    path = folder / JUDGEMENTS
    path.write_text(
        "clip_id,movie,video,start_s,end_s,level,concepts,annotator,seen_score,draw,place,mine\n"
        "a,tt1,,0,8,calm,,XY,0,random,1,kept\n",
        "utf-8",
    )
    Decisions(folder, film, book).judge(10, 20, "calm", annotator="AB")
    rows = rows_of(path)
    assert [(row["clip_id"], row["mine"]) for row in rows] == [("a", "kept"), (f"{folder.name}-0002", "")]
    # A number that is taken is passed over.
    path.write_text(path.read_text("utf-8").replace(f"{folder.name}-0002", f"{folder.name}-0003"), "utf-8")
    Decisions(folder, film, book).judge(30, 40, "calm", annotator="AB")
    assert rows_of(path)[-1]["clip_id"] == f"{folder.name}-0004"


@pytest.mark.parametrize(
    "decision",
    [
        {"level": "S"},
        {"concepts": ["Body"]},
        {"start_s": 20.0},
        {"end_s": 1000.0},
        {"start_s": float("nan")},
        {"annotator": " "},
    ],
)
def test_what_is_no_judgement_of_this_film_is_refused(place, decision):
    made = Decisions(*place)
    given = {"start_s": 10.0, "end_s": 20.0, "level": "calm", "annotator": "AB", **decision}
    with pytest.raises(ObygazeError):
        made.judge(given.pop("start_s"), given.pop("end_s"), given.pop("level"), **given)
    assert not (place[0] / JUDGEMENTS).exists()


def test_a_full_disk_loses_the_decision_alone(place, monkeypatch):
    made = Decisions(*place)
    made.judge(10, 20, "calm", annotator="AB")
    before = (place[0] / JUDGEMENTS).read_bytes()

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(io, "write_all", full)
        with pytest.raises(OSError, match="No space"):
            made.judge(20, 30, "calm", annotator="AB")
        with pytest.raises(OSError, match="No space"):
            made.undo()
    assert (place[0] / JUDGEMENTS).read_bytes() == before
    assert len(made.rows[JUDGEMENTS]) == 1
    made.judge(20, 30, "calm", annotator="AB")
    assert Decisions(*place).rows == made.rows


def test_a_file_of_other_columns_is_refused(place):
    (place[0] / PASSAGES).write_text("a,b\n1,2\n", "utf-8")
    with pytest.raises(ObygazeError, match=PASSAGES):
        Decisions(*place)


@pytest.mark.parametrize(("share", "is_useful"), [(0.05, True), (0.2, False), (0.5, True)])
def test_the_interval_at_any_time_holds_the_share_at_every_time(share, is_useful):
    """At all of 40 judgements together at least .95; fixed seeds. It narrows as judgements come."""
    n_cells, missed, widths = 150, 0, []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        p = 1 / (1 + np.exp(-2 * (rng.normal(size=n_cells) + np.log(share / (1 - share)))))
        y = (rng.random(n_cells) < p).astype(float)
        seconds = np.full(n_cells, 8.0)
        shown = p if is_useful else rng.random(n_cells)
        cells = Cells(np.zeros((n_cells, 2)), seconds, seconds, shown)
        order = rng.permutation(n_cells)[:40]
        low, high = anytime_interval(cells, order, y[order])
        early = anytime_interval(cells, order[:10], y[order[:10]])
        missed += not low - 1e-3 <= y.mean() <= high + 1e-3
        widths.append((high - low) / (early[1] - early[0]))
    assert missed <= 2
    assert np.median(widths) < 0.7


def test_a_wrong_model_costs_little_width_at_any_time():
    rng = np.random.default_rng(0)
    y, seconds = (rng.random(150) < 0.3).astype(float), np.full(150, 8.0)
    order, width = rng.permutation(150)[:40], {}
    for name, p in {"useless": np.full(150, 0.3), "wrong": 1 - y, "good": y}.items():
        low, high = anytime_interval(Cells(np.zeros((150, 2)), seconds, seconds, p), order, y[order])
        width[name] = high - low
    assert width["wrong"] < 1.25 * width["useless"]
    assert width["good"] < 0.9 * width["useless"]


def test_windows_are_judged_in_the_order_of_the_draw(place):
    folder, timeline, book = place
    film = OpenFilm(0, timeline, Decisions(folder, timeline, book))
    for number, (start, end) in enumerate(film.windows, start=1):
        answer = next_window(film, " AB ", 99)
        assert answer["done"] == number - 1
        assert answer["window"] == {"start": start, "end": end, "place": number}
        film.decisions.judge(start, end, "calm", annotator="AB", place=number)
    assert "window" not in next_window(film, "AB", 99)
    invented = invented_film(n_rows=60, duration_s=600.0)
    assert min(OpenFilm(0, invented, film.decisions).windows)[0] == 0


def test_capital_at_the_end_of_the_interval_at_any_time_is_20():
    """Of a model that says nothing, and judgements that are all 1: bets on them, and on differences."""
    cells = Cells(np.zeros((50, 2)), np.ones(50), np.ones(50), np.full(50, 0.5))
    low, high = anytime_interval(cells, np.arange(12), np.ones(12))
    assert high == 1

    def capital(share):
        bets = [
            (1 + sign * stake * (1 - share) / most) ** 12
            for lowest, highest in ((0, 1), (-0.5, 1.5))
            for sign, most in ((1, share - lowest), (-1, highest - share))
            for stake in STAKES
        ]
        return np.mean(bets)

    assert capital(low) < 20 <= capital(low - 0.001)


@pytest.mark.parametrize(
    ("perceives", "left_out"),
    [
        (["visual"], {"Speech", "Voice", "Soundtrack", "Narratology"}),
        (["heard", "visual"], {"Narratology"}),
        ([], set()),
    ],
)
def test_concepts_that_no_model_of_the_film_can_perceive_are_not_asked_for(tmp_path, perceives, left_out):
    film = with_model(invented_film(n_rows=60, duration_s=600.0), perceives=perceives)
    book = builtin_codebook("obygaze12")
    text = read_page(OpenFilm(0, film, Decisions(tmp_path, film, book)))
    asked = {name for name in book.concept_names if f'<input type="checkbox" value="{name}">' in text}
    assert asked == set(book.concept_names) - left_out


def test_a_citation_names_the_model_by_twelve_digits(tmp_path):
    film = with_model(invented_film(n_rows=60, duration_s=600.0), sha256="0123456789abcdef" * 4)
    text = read_page(OpenFilm(0, film, Decisions(tmp_path, film, builtin_codebook("obygaze12"))))
    assert "Model 0123456789ab, obygaze" in text


@pytest.mark.parametrize(("name", "is_said"), [("obygaze12", False), ("mobygaze", True)])
def test_judgements_name_their_codebook_unless_it_is_the_first(tmp_path, name, is_said):
    film = invented_film(n_rows=60, duration_s=600.0)
    made = Decisions(tmp_path, film, builtin_codebook(name))
    made.judge(0, 10, "S", annotator="AB")
    (row,) = rows_of(tmp_path / JUDGEMENTS)
    assert ("codebook" in row) == is_said
