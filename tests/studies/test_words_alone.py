"""Windows hold what each expert marked and what is said; nothing of a film left out is learnt from."""

import re
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from examples.mobygaze_words import (
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
"""The levels and the concept whose shares of a window are computed."""


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
        segment(0, start=0, end=6, level="EN"),
        segment(1, start=6, end=25, level="S", concepts=("Body",)),
        segment(0, start=0, end=20, level="EN", annotator="b"),
        segment(1, start=20, end=25, level="S", annotator="b"),
    )
    text_of = {"m-a-0": "one two", "m-b-0": "three four five six", "m-b-1": "seven"}
    return expert_windows(segments, text_of, MARKS, seconds=10)


def test_the_words_of_an_experts_windows_are_those_of_the_other_experts_segments(windows):
    """Experts a and b each cut 25 s of a film into segments; their windows last 0 to 10 s and 10 to 20 s.

    Expert a's segments have the words "one two" (0 to 6 s) and none (6 to 25 s). Expert b's have "three four
    five six" (0 to 20 s), of which two words fall into each window. The words that an expert's own cuts
    select would tell the expert's labels.
    """
    assert windows["expert"].tolist() == ["a", "a", "b", "b"]
    assert windows["words"].tolist() == ["three four", "five six", "one two", ""]
    assert windows["place"].tolist() == [0, 0.5, 0, 0.5]  # of a window's start in the 20 s of both


def test_each_window_has_the_shares_of_its_time_that_its_expert_marked_and_that_the_other_called_s(windows):
    """Experts a and b each have two windows, of 0 to 10 s and of 10 to 20 s.

    Expert a called 0 to 6 s EN and the rest S with Body: in the first window, 4 s of 10 are S. Expert b
    called 0 to 20 s EN, both windows. "other S" is the share that the other of the two called S.
    """
    assert windows["expert"].tolist() == ["a", "a", "b", "b"]
    assert windows["S"].tolist() == [0.4, 1, 0, 0]
    assert windows["EN"].tolist() == [0.6, 0, 1, 1]
    assert windows["Body"].tolist() == [0.4, 1, 0, 0]
    assert windows["other S"].tolist() == [0, 0, 0.4, 1]


def test_a_window_is_positive_if_a_part_of_it_is_s_and_negative_if_nearly_all_of_it_is_easy(windows):
    """Of four windows, the first two are S for .4 and for all of their time: they are positive.

    The last two have no S. If they are EN (easy negative) for all of their time, they are negative. If they
    are EN for .9 of it only, something else is in them: they are neither, and are left out.
    """
    windows_of_90_percent_en = windows.assign(EN=0.9)

    labels = window_rows(windows, "S")["y"].tolist()
    labels_of_90_percent_en = window_rows(windows_of_90_percent_en, "S")["y"].tolist()

    assert labels == [1, 1, 0, 0]
    assert labels_of_90_percent_en == [1, 1]


@pytest.mark.parametrize(
    "second",
    [
        segment(1, start=0, end=5, level="S", annotator="a"),
        segment(1, start=None, end=None, level="S", annotator="b"),
    ],
    ids=["a second one of the same annotator", "one of another annotator without times"],
)
def test_segments_of_one_annotator_or_without_times_cannot_be_cut_into_windows(second):
    """A window has the labels of one annotator, and the words that another one heard at the same time.

    There are two segments. The first is of annotator a, from 0 to 5 s.
    """
    first = segment(0, start=0, end=5, level="EN", annotator="a")
    no_subtitles = {}

    with pytest.raises(ManifestError):
        expert_windows(manifest(first, second), no_subtitles, MARKS)


@pytest.fixture(scope="module")
def planted():
    """60 windows of each of six films, by two experts who agree.

    In three of four windows that are S "kiss" is said, and in all of them three words more.
    """
    rng = np.random.default_rng(0)
    rows = []
    for film in range(6):
        for index in range(60):
            is_s = rng.random() < 0.1 + 0.1 * film
            n_words = rng.integers(4, 9) + (3 if is_s else 0)
            words = [str(word) for word in rng.integers(100, 400, n_words)]
            if is_s and rng.random() < 0.75:
                words.append("kiss")
            for expert in ("1", "2"):
                row = {"movie": f"f{film}", "expert": expert, "place": index / 60, "words": " ".join(words)}
                row |= {"S": float(is_s), "EN": 1.0 - is_s, "other S": float(is_s)}
                rows.append(row)
    return pd.DataFrame(rows)


def says_kiss(texts):
    """Encode texts as an encoder would that knows one word."""
    return np.array([["kiss" in text, 1] for text in texts], float)


@pytest.fixture(scope="module")
def aucs_of_planted_windows(planted):
    """The AUC for S of every model, which is learnt from an expert ("trained") and tested on an expert.

    A word is used if it is said in five films or more. The encoder of sentences is `says_kiss`.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("examples.mobygaze_words.MIN_FILMS", 5)
        return study_windows(planted, "S", says_kiss)


def aucs_learnt_from_expert_1(aucs):
    """Return the rows of models that are learnt from expert 1."""
    return aucs[aucs["trained"] == "1"]


@pytest.mark.long
def test_a_planted_word_is_found_by_models_of_sentences_and_of_words(aucs_of_planted_windows):
    """In six films, "kiss" is said in three of four windows that two experts call S, and in no other window.

    So three of four S windows are told from the others by the word, the rest by chance: the AUC of sentences
    is .75 x 1 + .25 x .5 = .875. A control exchanges words between the windows of a film.
    """
    aucs = aucs_learnt_from_expert_1(aucs_of_planted_windows)
    mean_auc = aucs.groupby("model")["value"].mean()  # over the experts that models are tested on

    assert mean_auc["sentences"] == pytest.approx(0.875, abs=0.05)
    assert mean_auc["words"] > mean_auc["words, shuffled within films"] + 0.1


@pytest.mark.long
def test_sentences_with_a_planted_word_add_to_what_the_number_of_words_tells(aucs_of_planted_windows):
    """S windows have three words more than others, so their number tells S too.

    The row of this name is the AUC of sentences and number together, less that of the number alone. Its
    interval must be above 0.
    """
    aucs = aucs_learnt_from_expert_1(aucs_of_planted_windows)

    gain = aucs[aucs["model"] == "sentences and number of words less number of words"]

    assert len(gain) > 0
    assert (gain["low"] > 0).all()


@pytest.mark.long
def test_the_place_in_the_film_tells_nothing_of_windows_planted_at_random(aucs_of_planted_windows):
    aucs = aucs_learnt_from_expert_1(aucs_of_planted_windows)
    mean_auc = aucs.groupby("model")["value"].mean()

    assert mean_auc["place in the film"] == pytest.approx(0.5, abs=0.1)


@pytest.mark.long
def test_experts_who_always_agree_have_an_auc_of_1_for_each_other(aucs_of_planted_windows):
    """Two rows are of the other expert's calls: tested on expert 1 and on expert 2."""
    is_of_other_expert = aucs_of_planted_windows["model"] == "the other expert's call"

    assert aucs_of_planted_windows.loc[is_of_other_expert, "value"].tolist() == [1, 1]


@pytest.mark.long
def test_the_word_that_speaks_most_for_s_is_the_planted_one(planted, monkeypatch):
    """Only "kiss" goes with S; other words are numbers at random. A word counts if five films have it."""
    monkeypatch.setattr("examples.mobygaze_words.MIN_FILMS", 5)

    assert strongest_words(planted, "S", n=1)["for"] == ["kiss"]


def test_shuffled_windows_keep_their_number_of_words_which_stay_in_their_film(planted):
    """The windows are of six films and two experts, with 4 to 12 words each, so nearly all of them change."""
    words_before = planted["words"]

    words_after = shuffled(planted)

    n_words_before = [len(text.split()) for text in words_before]
    n_words_after = [len(text.split()) for text in words_after]
    assert n_words_after == n_words_before
    assert (words_after != words_before).mean() > 0.9
    for _, film in planted.groupby(["movie", "expert"]):
        all_words_before = " ".join(words_before[film.index]).split()
        all_words_after = " ".join(words_after[film.index]).split()
        assert sorted(all_words_after) == sorted(all_words_before)


def test_the_labels_of_a_film_do_not_change_its_own_scores(planted):
    """A film is scored by a model that is learnt from the other films, so its own labels are not seen.

    The labels of film f3 are reversed. If its scores stay, its AUC of A becomes 1 - A.
    """
    rows = window_rows(planted, "S")
    reversed_in_f3 = rows["y"].where(rows["movie"] != "f3", 1 - rows["y"])
    rows_with_f3_reversed = rows.assign(y=reversed_in_f3)
    features = np.random.default_rng(0).normal(size=(len(rows), 4))
    expert_learnt_from = ["1"]

    auc = learnt(rows, features, expert_learnt_from).loc["f3"]
    auc_with_f3_reversed = learnt(rows_with_f3_reversed, features, expert_learnt_from).loc["f3"]

    assert auc_with_f3_reversed.to_numpy() == pytest.approx(1 - auc.to_numpy())


def segments_of_which_s_are_longer():
    """Cut each of four films, k to n, into 40 segments by each of two experts, a and b: EN and S by turns."""
    rng = np.random.default_rng(0)
    segments = []
    for movie, annotator in product("klmn", "ab"):
        start = 0.0
        for number in range(40):
            level, unit_s = ("S", 8) if number % 2 else ("EN", 3)
            end = start + rng.gamma(4) * unit_s
            segments.append(segment(number, start, end, level, annotator=annotator, movie=movie))
            start = end
    return segments


def test_the_length_of_segments_tells_s_where_experts_cut_longer_ones():
    """Segments of four films by two experts are EN and S by turns; S are 8/3 times as long on average.

    All segments have the same words, so words tell nothing, and their AUC is .5.
    """
    segments = segments_of_which_s_are_longer()
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
    """The script examples/words_of_mobygaze.py runs on the real data, without an encoder.

    The words and lines of its tables must be those of the page. Its figures, of three decimals, may differ by
    what processors differ by, which was .002.
    """
    script = ROOT / "examples" / "words_of_mobygaze.py"
    output = execute(sys.executable, "-W", "error", str(script), str(shared_data / "mobygaze")).stdout
    printed = "\n".join(line for line in output.splitlines() if line)
    page = results_on_page()

    printed_without_figures = re.sub(FIGURE, "", printed)
    page_without_figures = re.sub(FIGURE, "", page)
    assert printed_without_figures == page_without_figures

    printed_figures = [float(figure) for figure in re.findall(FIGURE, printed)]
    figures_of_page = [float(figure) for figure in re.findall(FIGURE, page)]
    assert printed_figures == pytest.approx(figures_of_page, abs=0.005)
