"""Windows hold what each expert marked and what is said; nothing of a film left out is learnt from."""

import re
import sys
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
    return Clip(f"{movie}-{annotator}-{number}", movie, "", start, end, level, concepts, annotator)


def manifest(*clips):
    return Manifest(clips, Path(), builtin_codebook("mobygaze"))


def test_a_window_has_this_experts_marks_and_the_words_of_the_other():
    segments = manifest(
        segment(0, 0, 6, "EN"),
        segment(1, 6, 25, "S", ("Body",)),
        segment(0, 0, 20, "EN", annotator="b"),
        segment(1, 20, 25, "S", annotator="b"),
    )
    said = {"m-a-0": "one two", "m-b-0": "three four five six", "m-b-1": "seven"}
    windows = expert_windows(segments, said, MARKS, seconds=10)
    assert windows["expert"].tolist() == ["a", "a", "b", "b"]  # the last 5 s are no window
    assert windows["words"].tolist() == ["three four", "five six", "one two", ""]
    assert windows[[*MARKS]].to_numpy().tolist() == [[0.4, 0.6, 0.4], [1, 0, 1], [0, 1, 0], [0, 1, 0]]
    assert windows["other S"].tolist() == [0, 0, 0.4, 1]
    assert windows["place"].tolist() == [0, 0.5, 0, 0.5]
    assert window_rows(windows, "S")["y"].tolist() == [1, 1, 0, 0]
    assert window_rows(windows.assign(EN=0.9), "S")["y"].tolist() == [1, 1]


@pytest.mark.parametrize("wrong", [segment(1, 0, 5, "S"), segment(1, None, None, "S", annotator="b")])
def test_one_annotator_or_segments_without_times_are_refused(wrong):
    with pytest.raises(ManifestError):
        expert_windows(manifest(segment(0, 0, 5, "EN"), wrong), {}, MARKS)


def planted(seed=0, n_films=6, n=60):
    """Windows of two experts who agree: "kiss" is said in three of four that are S, and more in any S."""
    rng = np.random.default_rng(seed)
    rows = []
    for film in range(n_films):
        for place in range(n):
            is_s = rng.random() < 0.1 + 0.1 * film
            n_words = rng.integers(4, 9) + (3 if is_s else 0)
            words = [str(word) for word in rng.integers(100, 400, n_words)]
            if is_s and rng.random() < 0.75:
                words.append("kiss")
            marks = {"S": float(is_s), "EN": 1.0 - is_s, "other S": float(is_s)}
            for expert in ("1", "2"):
                rows.append({"movie": f"f{film}", "expert": expert, "place": place / n} | marks)
                rows[-1]["words"] = " ".join(words)
    return pd.DataFrame(rows)


def test_planted_words_are_found_and_those_dealt_anew_tell_their_number_alone(monkeypatch):
    monkeypatch.setattr("examples.mobygaze_words.LEAST_FILMS", 5)
    windows = planted()
    found = study_windows(
        windows, "S", lambda texts: np.array([["kiss" in text, 1] for text in texts], float)
    )
    value = found[found["trained"] == "1"].groupby("model")["value"].mean()
    assert value["sentences"] == pytest.approx(
        0.875, abs=0.05
    )  # three of four are told apart, the rest by chance
    assert value["words"] > value["words, shuffled within films"] + 0.1
    gain = found.query(f"model == 'sentences and {MANY} less {MANY}' and trained == '1'")
    assert (gain["low"] > 0).all()
    assert value["place in the film"] == pytest.approx(0.5, abs=0.1)
    assert found.loc[found["model"] == "the other expert's call", "value"].tolist() == [1, 1]
    assert strongest_words(windows, "S", n=1)["for"] == ["kiss"]


def test_words_that_are_dealt_anew_stay_in_their_film_and_windows_keep_their_number():
    windows = planted()
    dealt = shuffled(windows)
    assert (dealt.str.split().str.len() == windows["words"].str.split().str.len()).all()
    assert (dealt != windows["words"]).mean() > 0.9
    for _, own in windows.groupby(["movie", "expert"]):
        assert sorted(" ".join(own["words"]).split()) == sorted(" ".join(dealt[own.index]).split())


def test_labels_of_the_film_left_out_change_nothing_that_is_learnt_for_it():
    rows = window_rows(planted(), "S")
    X = np.random.default_rng(0).normal(size=(len(rows), 4))
    other = rows.assign(y=rows["y"].where(rows["movie"] != "f3", 1 - rows["y"]))
    before = learnt(rows, X, ["1"])
    after = learnt(other, X, ["1"])
    assert after.loc["f3"].to_numpy() == pytest.approx(1 - before.loc["f3"].to_numpy())  # the same scores


def test_the_length_of_a_segment_that_was_drawn_around_its_level_tells_it():
    rng = np.random.default_rng(0)
    clips = []
    said = {}
    for movie in "klmn":
        for annotator in "ab":
            start = 0.0
            for number in range(40):
                level = ("EN", "S")[number % 2]
                end = start + rng.gamma(4) * (8 if level == "S" else 3)
                clips.append(segment(number, start, end, level, annotator=annotator, movie=movie))
                said[clips[-1].clip_id] = "some words that say nothing"
                start = end
    found = study_segments(manifest(*clips), said).groupby("model")["value"].mean()
    assert found["words"] == pytest.approx(0.5, abs=0.01)
    assert found["number of words and seconds"] > 0.8


@pytest.mark.long
@pytest.mark.nightly
def test_the_page_shows_what_the_script_prints(shared_data):
    """Only here is the study redone on the real data; without the encoder, whose rows take minutes."""
    root = Path(__file__).parents[2]
    script = root / "examples" / "words_of_mobygaze.py"
    printed = execute(sys.executable, "-W", "error", str(script), str(shared_data / "mobygaze")).stdout
    page = (root / "docs" / "mobygaze-words.md").read_text(encoding="utf-8")
    shown = page[page.index("### Segments") :].splitlines()
    shown = [line for line in shown if not line.startswith(("| sentences", "## ", "- ", "  "))]
    figure = r"[+-]?\d\.\d{3}"
    assert [re.sub(figure, "", line) for line in filter(None, printed.splitlines())] == [
        re.sub(figure, "", line) for line in filter(None, shown)
    ]
    ours = [float(number) for number in re.findall(figure, printed)]
    assert ours == pytest.approx(
        [float(number) for line in shown for number in re.findall(figure, line)], abs=0.005
    )  # processors differ by .002
