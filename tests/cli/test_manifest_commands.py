"""`obygaze manifest ...` as a user meets it."""

import json
import sys
from pathlib import Path

import pytest

from obygaze.cli import main
from obygaze_features.manifest import FIELDS, read_manifest, read_texts

HEADER = ",".join(FIELDS)


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Run a command in an empty folder: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(["manifest", *map(str, arguments)])
        printed = capsys.readouterr()
        return ended.value.code or 0, printed.out, printed.err

    return run


def write(path, *rows):
    Path(path).write_text("\n".join([HEADER, *rows, ""]), encoding="utf-8")
    return path


@pytest.fixture
def segments(tmp_path):
    """Two annotators of film m, who disagree on the second half, and one of film n."""
    return write(
        tmp_path / "segments.csv",
        "1,m,,0,50,S,Body,ann",
        "2,m,,50,100,EN,,ann",
        "3,m,,0,40,S,Look,bea",
        "4,m,,40,100,HN,Speech,bea",
        "5,n,,0,60,NS,Activity,ann",
    )


def test_a_folder_is_imported_inspected_and_not_replaced_unasked(run, tmp_path):
    (tmp_path / "films" / "two").mkdir(parents=True)
    (tmp_path / "films" / "one.mp4").touch()
    (tmp_path / "films" / "two" / "b.mkv").touch()
    (tmp_path / "films" / "notes.txt").touch()
    code, out, err = run("import", "folder", "films", "--out", "films.csv")
    assert (code, out) == (0, "films.csv: 2 clips of 2 movies (2 without level)\n")
    assert err == "left out 1 file that is no video by name: 1 .txt\n"
    (tmp_path / "films" / "one.mp4").unlink()
    code, out, _ = run("inspect", "films.csv", "--json")
    summary = json.loads(out)
    assert summary["videos"] == {"files": 2, "on_disk": 1, "missing": 1, "clips_without": 0}
    assert summary["missing_videos"] == [str(tmp_path / "films" / "one.mp4")]
    assert summary["digest"] == read_manifest("films.csv").digest()
    code, out, err = run("import", "folder", "films", "--out", "films.csv")
    assert (code, out) == (1, "")
    assert (
        err
        == "obygaze: error: films.csv is there already; choose another --out, or replace it with --force\n"
    )
    assert run("import", "folder", "films", "--out", "films.csv", "--force")[0] == 0
    assert len(read_manifest("films.csv")) == 1


def test_inspect_shows_the_first_clips_and_how_many_more(run, segments):
    code, out, _ = run("inspect", segments, "--rows", "2")
    assert code == 0
    assert "5\n" in out
    assert "1 EN, 1 HN, 1 NS, 2 S, 0 none" in out
    assert "ann, bea" in out
    assert "5 clips, 260.0 seconds" in out
    assert out.endswith("... and 3 more\n")


def test_segments_are_projected_onto_windows(run, segments):
    code, out, err = run("project", segments, "--window", "50", "--out", "windows.csv")
    assert (code, err) == (0, "")
    assert out == "windows.csv: 4 clips of 2 movies (1 HN, 2 NS, 1 S)\n"
    rows = [(clip.clip_id, clip.level, clip.concepts) for clip in read_manifest("windows.csv")]
    assert rows == [
        ("m-0001", "S", ("Look", "Body")),
        ("m-0002", "HN", ("Speech",)),
        ("n-0001", "NS", ("Activity",)),
        ("n-0002", "NS", ("Activity",)),
    ]


def test_segments_are_projected_onto_clips_and_the_rest_is_told(run, segments):
    write("scenes.csv", "s1,m,,0,50,HN,,", "s2,z,,0,10,,,")
    code, _, err = run("project", segments, "--onto", "scenes.csv", "--per-annotator", "--out", "out.csv")
    assert code == 0
    assert [(clip.clip_id, clip.level) for clip in read_manifest("out.csv")] == [
        ("s1-ann", "S"),
        ("s1-bea", "S"),
        ("s2", None),
    ]
    assert err.splitlines() == [
        "replaced the labels that 1 clips of scenes.csv had",
        "nobody annotated z: no level for their clips",
        "left out the annotations of n: no clip of theirs to label",
    ]


def test_project_wants_one_target(run, segments):
    code, _, err = run("project", segments, "--out", "out.csv")
    assert code == 2
    assert "either --onto CLIPS or --window SECONDS" in err


def test_agreement_of_segments_projects_first_and_says_so(run, segments):
    code, out, err = run("agreement", segments, "--window", "50", "--json")
    assert code == 0
    assert err == "projected onto windows of 50 s, threshold 0.2\n"
    document = json.loads(out)
    (pair,) = document["pairs"]
    assert (pair["movie"], pair["annotators"]) == ("m", ["ann", "bea"])
    assert pair["all_levels"]["n_clips"] == 2
    assert pair["all_levels"]["observed"] == pytest.approx(0.15)
    assert pair["all_levels"]["expected"] == pytest.approx((0 + 0.7 + 1 + 0.3) / 4)
    assert document["mean_gamma"]["all_levels"] == pytest.approx(0.7)
    assert run("agreement", segments, "--window", "50", "--json")[1] == out


def test_agreement_says_where_gamma_is_undefined(run):
    write("same.csv", "1,m,,0,1,S,,a", "2,m,,0,1,S,,b")
    code, out, err = run("agreement", "same.csv")
    assert code == 0
    assert "undefined" in out
    assert "nan" not in out.lower()
    assert err.startswith("undefined for 1 of 1 pairs, which the means leave out")
    assert json.loads(run("agreement", "same.csv", "--json")[1])["mean_gamma"] == {
        "all_levels": None,
        "labels_only": None,
    }


def test_agreement_with_the_alignment_term_takes_segments_as_they_are(run, segments):
    code, out, err = run("agreement", segments, "--alpha", "1", "--json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert (document["alpha"], document["beta"], document["samples"]) == (1, 1, 62)
    (pair,) = document["pairs"]
    assert (pair["all_levels"]["n_units"], pair["all_levels"]["n_aligned"]) == ([1, 2], 1)
    out = run("agreement", segments, "--alpha", "1")[1]
    assert "aligned" in out
    assert "±" in out
    code, _, err = run("agreement", segments, "--alpha", "1", "--window", "46")
    assert code == 2
    assert "--window projects segments, which --alpha compares as they are" in err


def test_agreement_of_one_annotator_is_an_error(run):
    write("alone.csv", "1,m,,0,1,S,,a")
    code, _, err = run("agreement", "alone.csv")
    assert code == 1
    assert "nothing to compare" in err


def test_stats_show_printed_numbers_for_obygaze12_alone(run, shared_data, segments):
    assert run("import", "obygaze12", shared_data / "obygaze12", "--out", "o.csv")[0] == 0
    code, out, _ = run("stats", "o.csv")
    assert code == 0
    assert "label policy paper: 1,914 clips, 0 without level, 0 left out by the policy" in out
    assert "label policy released: 1,340 clips, 0 without level, 574 left out by the policy" in out
    assert "label policy raw: 1,914 clips" in out
    assert "52.4%" in out
    assert "printed" in out
    paper = json.loads(run("stats", "o.csv", "--policy", "paper", "--json")[1])["policies"]["paper"]
    assert paper["levels"] == {"EN": 1003, "HN": 309, "NS": 292, "S": 310}
    assert paper["numbers"][-1] == {
        "name": "visual concepts per S clip",
        "ours": pytest.approx(2.6, abs=5e-3),
        "printed": "2.60",
    }
    assert "printed" not in run("stats", segments)[1]


def test_stats_by_annotator_sets_and_sweep_are_reports(run, segments):
    code, out, _ = run("stats", segments, "--by", "annotator", "--out", "by", "--html", "by.html")
    assert code == 0
    assert "Levels and concepts by annotator\n  label policy paper\n" in out
    assert sorted(path.suffix for path in Path("by").iterdir()) == [".csv", ".json", ".json", ".md", ".tex"]
    assert Path("by.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    code, out, _ = run("stats", segments, "--sets", "--policy", "raw", "--json")
    document = json.loads(out)
    assert document["record"]["policy"] == "raw"
    sets = {(row["name"], row["level"]): row["clips"] for row in document["rows"] if row["kind"] == "set"}
    assert sets == {("", "EN"): 1, ("", "HN"): 1, ("Activity", "NS"): 1, ("Body", "S"): 1, ("Look", "S"): 1}
    code, out, _ = run("stats", segments, "--sweep", "0.1,0.6", "--window", "50")
    assert code == 0
    assert "projected onto windows of 50 s; label policy paper" in out


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--by", "annotator", "--sets"], "--by and --sets are different reports"),
        (["--window", "9"], "--window is for --sweep"),
        (["--out", "x"], "--out is for --by, --sets or --sweep"),
        (["--sets", "--figure", "f.png"], "--figure draws Figure 2"),
        (["--sweep", "0.1;0.2"], "numbers joined by commas"),
        (["--sweep", "0.1,0.1"], "a sweep needs thresholds that differ"),
        (["--sweep", "20"], "threshold 20.0: expected a share"),
        (["--by", "genre"], "no column 'genre' to group clips by: there are annotator, movie"),
    ],
)
def test_a_view_of_stats_that_cannot_be_is_one_line(run, segments, arguments, what):
    code, out, err = run("stats", segments, *arguments)
    assert (code in {1, 2}, out) == (True, "")
    assert what in err


@pytest.mark.parametrize("name", ["figure.svg", "figure.png", "figure.pdf"])
def test_the_figure_is_the_same_bytes_twice(run, segments, name):
    pytest.importorskip("matplotlib")
    assert run("stats", segments, "--figure", name)[0] == 0
    first = Path(name).read_bytes()
    assert run("stats", segments, "--figure", name)[0] == 0
    assert Path(name).read_bytes() == first
    assert len(first) > 1000


def test_a_figure_that_cannot_be_drawn_is_known_before_the_tables(run, segments, monkeypatch):
    monkeypatch.delitem(sys.modules, "obygaze_studies.obygaze12.figure2", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, out, err = run("stats", segments, "--figure", "figure.svg")
    assert (code, out) == (1, "")
    assert "obygaze[figures]" in err


def test_a_figure_of_another_kind_is_refused(run, segments):
    code, _, err = run("stats", segments, "--figure", "figure.gif")
    assert code == 2
    assert "--figure" in err


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["inspect", "nowhere.csv"], "nowhere.csv"),
        (["inspect", "."], ".: is a folder, and a text file was expected"),
        (["stats", "bad.csv"], "bad.csv: line 2, column level: unknown level 'Q'"),
        (["agreement", "empty.csv"], "empty.csv: the file is empty"),
        (["import", "obygaze12", "nowhere", "--out", "o.csv"], "nowhere"),
        (["import", "mobygaze", ".", "--out", "o.csv"], ".: no mobygaze_dataframe.csv in this folder"),
        (["import", "folder", "nowhere", "--out", "o.csv"], "nowhere: does not exist"),
        (["import", "folder", ".", "--out", "no/o.csv"], "no such folder to write o.csv in"),
        (["project", "bad.csv", "--window", "9", "--out", "o.csv"], "bad.csv: line 2"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing_behind(run, arguments, what):
    write("bad.csv", "a,a,,,,Q,,")
    Path("empty.csv").touch()
    code, out, err = run(*arguments)
    assert (code, out) == (1, "")
    assert err.startswith("obygaze: error: ")
    assert what in err
    assert err.count("\n") == 1
    assert sorted(path.name for path in Path().iterdir()) == ["bad.csv", "empty.csv"]


@pytest.mark.parametrize(
    "error", [PermissionError(13, "Permission denied"), OSError(28, "No space left on device")]
)
def test_a_folder_that_takes_no_file_is_one_line(run, segments, tmp_path, monkeypatch, error):
    def refuse(path, _):
        error.filename = str(path)
        raise error

    monkeypatch.setattr("obygaze_features.io.write_new", refuse)
    code, _, err = run("project", segments, "--window", "50", "--out", "out.csv")
    assert code == 1
    assert err.startswith("obygaze: error: ")
    assert error.strerror in err
    assert "out.csv" in err
    assert "partial" not in err
    assert err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["segments.csv"]


@pytest.mark.parametrize(
    "command", [["import"], ["import", "folder"], ["inspect"], ["project"], ["agreement"], ["stats"]]
)
def test_every_help_has_examples(run, command):
    code, out, _ = run(*command, "--help")
    assert code == 0
    assert "Examples:\n    obygaze manifest " in out


def test_subtitles_of_mobygaze_are_texts_that_the_manifest_s_clips_share(run, shared_data):
    source = shared_data / "mobygaze"
    code, out, err = run("import", "mobygaze", source, "--out", "all.csv")
    assert code == 0
    assert "left out the subtitles of" in err
    words = (
        "import",
        "mobygaze",
        source,
        "--records",
        "speech",
        "--texts",
        "texts.csv",
        "--out",
        "speech.csv",
    )
    code, out, _ = run(*words)
    assert code == 0
    texts, manifest = read_texts(Path("texts.csv")), read_manifest(Path("speech.csv"))
    assert [text_id for text_id, _ in texts.rows] == [clip.clip_id for clip in manifest]
    assert f"texts.csv: subtitles of {len(manifest):,} segments" in out
    assert run(*words[:-1], "other.csv")[0] == 1  # the texts are there already
    assert not Path("other.csv").exists()
