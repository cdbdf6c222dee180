"""Windows hold what each expert marked and what is said; nothing of a film left out is learnt from."""

import re
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from examples.mobygaze_words import (
    MANY,
    expert_windows,
    learnt,
    shuffled,
    strongest_words,
    study_segments,
    study_windows,
    window_rows,
)
from obygaze_features.errors import ManifestError
from obygaze_features.manifest import Clip, Manifest, builtin_codebook
from tests.process import execute

MARKS = ("S", "EN", "Body")


def segment(number, start, end, level, concepts=(), annotator="a", movie="m"):
    """Make a segment MOVIE-ANNOTATOR-NUMBER."""
    return Clip(f"{movie}-{annotator}-{number}", movie, "", start, end, level, concepts, annotator)


def manifest(*clips):
    """Make a manifest under MObyGaze's codebook."""
    return Manifest(clips, Path(), builtin_codebook("mobygaze"))


@pytest.fixture(scope="module")
def windows():
    """Windows of 10 s of 25 s that the experts a and b judged.

    Expert a calls 6 s EN and 19 s S with Body; b calls 20 s EN and 5 s S. The last 5 s are no window.
    """
    segments = manifest(
        segment(0, 0, 6, "EN"),
        segment(1, 6, 25, "S", ("Body",)),
        segment(0, 0, 20, "EN", annotator="b"),
        segment(1, 20, 25, "S", annotator="b"),
    )
    text_of = {"m-a-0": "one two", "m-b-0": "three four five six", "m-b-1": "seven"}
    return expert_windows(segments, text_of, MARKS, seconds=10)


def test_each_expert_has_windows_with_the_words_that_the_other_cut_and_the_shares_of_marks(windows):
    """Of the windows from 0 to 10 s and from 10 to 20 s, a marked 4 s and 10 s S, with Body.

    Words are taken from the segments that the other expert cut: the cuts of an expert would tell the labels
    that this expert gave.
    """
    assert windows["expert"].tolist() == ["a", "a", "b", "b"]
    assert windows["place"].tolist() == [0, 0.5, 0, 0.5]
    assert windows["words"].tolist() == ["three four", "five six", "one two", ""]
    assert windows["S"].tolist() == [0.4, 1, 0, 0]
    assert windows["EN"].tolist() == [0.6, 0, 1, 1]
    assert windows["Body"].tolist() == [0.4, 1, 0, 0]
    assert windows["other S"].tolist() == [0, 0, 0.4, 1]


def test_a_window_is_positive_if_any_of_it_is_and_negative_if_all_of_it_is_easy(windows):
    """The first two windows have some S, the last two are EN from end to end."""
    assert window_rows(windows, "S")["y"].tolist() == [1, 1, 0, 0]
    assert window_rows(windows.assign(EN=0.9), "S")["y"].tolist() == [1, 1]


@pytest.mark.parametrize(
    "second",
    [segment(1, 0, 5, "S"), segment(1, None, None, "S", annotator="b")],
    ids=["of one annotator", "without times"],
)
def test_segments_that_make_no_windows_are_refused(second):
    with pytest.raises(ManifestError):
        expert_windows(manifest(segment(0, 0, 5, "EN"), second), {}, MARKS)


@pytest.fixture(scope="module")
def planted():
    """60 windows of each of six films, by two experts who agree.

    In three of four windows that are S "kiss" is said, and in all of them three words more.
    """
    rng = np.random.default_rng(0)
    rows = []
    for film in range(6):
        for place in range(60):
            is_s = rng.random() < 0.1 + 0.1 * film
            n_words = rng.integers(4, 9) + (3 if is_s else 0)
            words = [str(word) for word in rng.integers(100, 400, n_words)]
            if is_s and rng.random() < 0.75:
                words.append("kiss")
            for expert in ("1", "2"):
                row = {"movie": f"f{film}", "expert": expert, "place": place / 60, "words": " ".join(words)}
                row |= {"S": float(is_s), "EN": 1.0 - is_s, "other S": float(is_s)}
                rows.append(row)
    return pd.DataFrame(rows)


def says_kiss(texts):
    """Encode texts as an encoder would that knows one word."""
    return np.array([["kiss" in text, 1] for text in texts], float)


@pytest.mark.long
def test_a_planted_word_is_found_by_sentences_and_words_and_by_nothing_else(planted, monkeypatch):
    """Three of four positive windows are told apart by the word, the rest by chance.

    Words are learnt that are said in five films, since six are planted.
    """
    monkeypatch.setattr("examples.mobygaze_words.LEAST_FILMS", 5)

    table = study_windows(planted, "S", says_kiss)

    auc = table[table["trained"] == "1"].groupby("model")["value"].mean()  # of both tests
    assert auc["sentences"] == pytest.approx(0.875, abs=0.05)
    assert auc["words"] > auc["words, shuffled within films"] + 0.1
    assert auc["place in the film"] == pytest.approx(0.5, abs=0.1)
    assert table.loc[table["model"] == "the other expert's call", "value"].tolist() == [1, 1]
    gain = table.query(f"model == 'sentences and {MANY} less {MANY}' and trained == '1'")
    assert (gain["low"] > 0).all()
    assert strongest_words(planted, "S", n=1)["for"] == ["kiss"]


def test_shuffled_windows_keep_their_number_of_words_which_stay_in_their_film(planted):
    words = shuffled(planted)
    assert (words.str.split().str.len() == planted["words"].str.split().str.len()).all()
    assert (words != planted["words"]).mean() > 0.9
    for _, film in planted.groupby(["movie", "expert"]):
        before = sorted(" ".join(film["words"]).split())
        assert sorted(" ".join(words[film.index]).split()) == before


def test_the_labels_of_a_film_do_not_change_its_own_scores(planted):
    """Where labels are reversed and scores stay, an AUC of A becomes 1 - A."""
    rows = window_rows(planted, "S")
    X = np.random.default_rng(0).normal(size=(len(rows), 4))
    with_f3_reversed = rows.assign(y=rows["y"].where(rows["movie"] != "f3", 1 - rows["y"]))
    auc = learnt(rows, X, ["1"]).loc["f3"].to_numpy()
    auc_with_reversed_labels = learnt(with_f3_reversed, X, ["1"]).loc["f3"].to_numpy()
    assert auc_with_reversed_labels == pytest.approx(1 - auc)


def test_the_length_of_segments_tells_s_where_experts_cut_longer_ones():
    """Segments of four films by two experts are EN and S by turns; S are 8/3 times as long on average.

    All segments have the same words, so words tell nothing.
    """
    rng = np.random.default_rng(0)
    segments = []
    for movie, annotator in product("klmn", "ab"):
        start = 0.0
        for number in range(40):
            level, unit_s = ("S", 8) if number % 2 else ("EN", 3)
            end = start + rng.gamma(4) * unit_s
            segments.append(segment(number, start, end, level, annotator=annotator, movie=movie))
            start = end
    text_of = {clip.clip_id: "some words that say nothing" for clip in segments}

    auc = study_segments(manifest(*segments), text_of).groupby("model")["value"].mean()

    assert auc["words"] == pytest.approx(0.5, abs=0.01)
    assert auc["number of words and seconds"] > 0.8


ROOT = Path(__file__).parents[2]
FIGURE = r"[+-]?\d\.\d{3}"


def results_on_page():
    """Return the lines of docs/mobygaze-words.md that the script prints: tables without encoders' rows."""
    page = (ROOT / "docs" / "mobygaze-words.md").read_text(encoding="utf-8")
    rows_of_encoder, heading, item, continued_item = "| sentences", "## ", "- ", "  "
    not_printed = (rows_of_encoder, heading, item, continued_item)
    lines = page[page.index("### Segments") :].splitlines()
    return "\n".join(line for line in lines if line and not line.startswith(not_printed))


@pytest.mark.long
@pytest.mark.nightly
def test_docs_mobygaze_words_md_has_the_tables_that_the_script_prints(shared_data):
    """The script runs on the real data, without an encoder."""
    script = ROOT / "examples" / "words_of_mobygaze.py"
    output = execute(sys.executable, "-W", "error", str(script), str(shared_data / "mobygaze")).stdout
    printed = "\n".join(line for line in output.splitlines() if line)

    assert re.sub(FIGURE, "", printed) == re.sub(FIGURE, "", results_on_page())
    figures = [float(figure) for figure in re.findall(FIGURE, printed)]
    figures_on_page = [float(figure) for figure in re.findall(FIGURE, results_on_page())]
    assert figures == pytest.approx(figures_on_page, abs=0.005)  # processors differ by .002
