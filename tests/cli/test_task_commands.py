"""`obygaze task mediaeval15 ...` from annotations to scores, as a user meets it."""

import csv
import json

import numpy as np
import pytest

from obygaze.cli import main
from obygaze_features.store.testing import seal_arrays

VALENCE, AROUSAL = ("negative", "neutral", "positive"), ("calm", "neutral", "active")
N = 240


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    """Keep clips.csv, m.csv and two stores of 12 movies of 20 clips.

    Violent clips and the classes of both axes lie 20 deviations apart. One test clip failed in
    `descriptors`; `xclip` has the same features, made with pretrained weights.
    """
    folder = tmp_path_factory.mktemp("shelf")
    rng = np.random.default_rng(0)
    valence, arousal = rng.integers(0, 3, N), rng.integers(0, 3, N)
    X = rng.normal(size=(N, 4)).astype(np.float32)
    X[:, 0] += 20.0 * (np.arange(N) % 4 == 0)
    X[:, 1] += 20.0 * valence
    X[:, 2] += 20.0 * arousal
    rows = ["clip,movie,split,valence,arousal,violence"]
    movies = {}
    for row in range(N):
        clip, movie = f"ACCEDE{row:05}.mp4", f"film{row // 20:02}"
        movies[clip] = movie
        split = "dev" if row < N / 2 else "test"
        rows.append(
            f"{clip},{movie},{split},{(valence[row] - 1) / 2},{AROUSAL[arousal[row]]},{int(row % 4 == 0)}"
        )
    (folder / "clips.csv").write_text("\n".join([*rows, ""]), encoding="utf-8")
    arrays = {"descriptors": {"pooled": X}}
    seal_arrays(
        folder / "descriptors", movies, arrays, failed={"ACCEDE00239.mp4": "the file is empty (0 bytes)"}
    )
    seal_arrays(folder / "xclip", movies, {"xclip": {"pooled": X}}, weights_sha256="0" * 64)
    with pytest.raises(SystemExit) as left:
        main(["manifest", "import", "mediaeval15", str(folder), "--out", str(folder / "m.csv")])
    assert left.value.code == 0
    return folder


@pytest.fixture
def task(monkeypatch, tmp_path, capsys):
    """Run a command of the task in an empty folder; gives exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        with pytest.raises(SystemExit) as left:
            main(["task", "mediaeval15", *map(str, arguments)])
        captured = capsys.readouterr()
        return left.value.code, captured.out, captured.err

    return run


def train(task, shelf, subtask, *more, store="xclip"):
    return task("train", shelf / "m.csv", shelf / store, "--subtask", subtask, "--run", "a", *more)


def measured(out):
    """Give the lines of the table of measures."""
    lines = out.splitlines()
    return lines[lines.index("Measures") + 3 :]


def test_from_annotations_to_scores(task, shelf, tmp_path):
    assert train(task, shelf, "violence", "--external")[0] == 0
    assert train(task, shelf, "affect", "--external")[0] == 0
    runs = tmp_path / "runs" / "mediaeval15"
    assert sorted(path.name for path in runs.iterdir()) == [
        "affect-a.csv",
        "affect-a.csv.json",
        "violence-a.trec",
        "violence-a.trec.json",
    ]
    code, out, err = task(
        "score", "--truth", shelf / "m.csv", "--out", "scores", "--json",
        "--run", runs / "violence-a.trec", "--run", runs / "affect-a.csv",
    )  # fmt: skip
    assert (code, err) == (0, "")
    values = {(row["on"], row["measure"]): row for row in json.loads(out)["rows"]}
    assert values["violence", "map"]["value"] == 1.0
    assert 0.25 < values["violence", "map"]["chance"] < 0.35
    assert values["valence", "accuracy_all"]["value"] == values["arousal", "accuracy_all"]["value"] == 1.0
    assert values["violence", "map"]["published"] is None
    names = {path.name for path in (tmp_path / "scores").iterdir()}
    assert {"scores.csv", "scores.json", "scores.md", "precision_recall.png", "confusion.svg"} <= names
    assert json.loads((tmp_path / "scores" / "scores.json").read_text("utf-8")) == json.loads(out)
    with (tmp_path / "scores" / "scores.csv").open(encoding="utf-8", newline="") as file:
        tidy = list(csv.DictReader(file))
    assert len(tidy) == len(values)
    assert (
        sum(float(row["value"]) for row in tidy if row["on"] == "valence" and "_called_" in row["measure"])
        == 120
    )
    code, out, err = task("check", runs, "--truth", shelf / "m.csv")
    assert code == 3
    assert out.splitlines()[2].split() == ["violence", "a", "yes", "100.0%", "0%"]
    assert "problem: violence: no run without external data; at least one is required" in err


def test_a_run_with_a_missing_clip_is_valid_and_its_coverage_is_said(task, shelf):
    code, out, err = train(task, shelf, "violence", store="descriptors")
    assert code == 0
    assert "119 test clips, 1 missing" in out
    assert err == "excluded ACCEDE00239.mp4: failed: the file is empty (0 bytes)\n"
    code, out, err = task("check", "runs/mediaeval15", "--truth", shelf / "m.csv", "--json")
    assert (code, err) == (0, "")
    (finding,) = json.loads(out)["findings"]
    assert finding["what"] == "1 of 120 test clips are missing; the first is 'ACCEDE00239.mp4'"
    _, out, _ = task("score", "--truth", shelf / "m.csv", "--run", "runs/mediaeval15/violence-a.trec")
    assert "1 of 120 judged clips are missing from the run" in out


def test_pretrained_features_need_the_external_mark(task, shelf, tmp_path):
    code, out, err = train(task, shelf, "violence")
    assert (code, out) == (1, "")
    assert "pretrained weights, which have seen external data: mark the run with --external" in err
    assert not (tmp_path / "runs").exists()


def test_features_of_unknown_origin_need_the_external_mark(task, shelf, tmp_path):
    clips = list(csv.DictReader((shelf / "clips.csv").read_text("utf-8").splitlines()))
    movies = {clip["clip"]: clip["movie"] for clip in clips}
    X = np.random.default_rng(0).normal(size=(N, 2)).astype(np.float32)
    seal_arrays(tmp_path / "own", movies, {"own": {"pooled": X}}, imported=True)
    asked = ("train", shelf / "m.csv", "own", "--subtask", "violence", "--run", "a")
    code, out, err = task(*asked)
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert "features of own were imported, and their provenance does not exclude external data" in err
    assert task(*asked, "--external")[0] == 0
    record = tmp_path / "runs" / "mediaeval15" / "violence-a.trec.json"
    told = json.loads(record.read_text(encoding="utf-8"))
    assert (told["external_data"], told["pretrained"]) == (True, None)
    record.write_text(json.dumps(told | {"external_data": False}), encoding="utf-8")
    code, _, err = task("check", "runs/mediaeval15", "--truth", shelf / "m.csv")
    assert code == 3
    assert "says external_data false, and that its features are of an unknown origin" in err


def test_another_model_is_trained_by_its_name_and_recorded(task, shelf):
    code, out, _ = train(task, shelf, "violence", "--external", "--model", "movie_prior", "--json")
    assert code == 0
    assert json.loads(out)["model"]["name"] == "movie_prior"
    code, _, err = train(task, shelf, "violence", "--external", "--model", "liner", "--force")
    assert (code, err) == (1, "obygaze: error: unknown model 'liner': did you mean 'linear'?\n")


def test_arguments_the_wrong_way_round_are_recognised(task, shelf):
    code, _, err = task("train", shelf / "xclip", shelf / "m.csv", "--subtask", "affect", "--run", "a")
    assert code == 1
    assert err.count("\n") == 1
    assert "give MANIFEST first, then STORE" in err


def test_the_same_command_gives_the_same_bytes_and_no_folder_of_this_machine(task, shelf, tmp_path):
    for name in ("one", "two"):
        assert train(task, shelf, "affect", "--external", "--out", name)[0] == 0
        truth = ("--truth", shelf / "m.csv", "--run", f"{name}/affect-a.csv")
        assert task("score", *truth, "--out", f"{name}/scores")[0] == 0
    for path in (path for path in (tmp_path / "one").rglob("*") if path.is_file()):
        assert path.read_bytes() == (tmp_path / "two" / path.relative_to(tmp_path / "one")).read_bytes()
        assert str(shelf).encode() not in path.read_bytes()


def test_a_run_that_is_there_is_replaced_only_when_forced(task, shelf):
    assert train(task, shelf, "affect", "--external")[0] == 0
    code, _, err = train(task, shelf, "affect", "--external")
    assert code == 1
    assert "is there already: give --force" in err
    assert train(task, shelf, "affect", "--external", "--force")[0] == 0


def test_a_leaking_split_is_refused(task, shelf, tmp_path):
    lines = (shelf / "m.csv").read_text("utf-8").splitlines()
    first = next(place for place, line in enumerate(lines) if line.startswith("ACCEDE00000.mp4,"))
    lines[first] = lines[first].replace(",dev,", ",test,")
    (tmp_path / "leak.csv").write_text("\n".join([*lines, ""]), encoding="utf-8")
    code, _, err = task(
        "train", "leak.csv", shelf / "xclip", "--subtask", "affect", "--run", "a", "--external"
    )
    assert code == 1
    assert err == "obygaze: error: the split leaks: movie 'film00' has clips in dev and in test\n"


def test_labels_are_made_of_scores(task, shelf, tmp_path):
    code, out, _ = task("labels", shelf / "clips.csv", "--out", "labelled.csv")
    assert (code, out) == (0, "labelled.csv: 240 clips (0 without valence, 0 without arousal), 0 left out\n")
    with (tmp_path / "labelled.csv").open(encoding="utf-8", newline="") as file:
        assert {row["valence"] for row in csv.DictReader(file)} == set(VALENCE)
    assert task("labels", shelf / "clips.csv", "--out", "labelled.csv")[0] == 1


def test_the_synthetic_run_scores_as_printed(task, shared_data, tmp_path):
    folder = shared_data / "audits" / "mediaeval_synth"
    run = (folder / "run.csv").read_text("utf-8").splitlines()
    affect = [line.split(",")[0::2][:1] + line.split(",")[2:] for line in run[1:]]
    lines = ["clip,valence,arousal", *(",".join(cells) for cells in affect), ""]
    (tmp_path / "affect.csv").write_text("\n".join(lines), encoding="utf-8")
    code, out, err = task(
        "score", "--truth", folder / "truth.csv", "--run", folder / "run.trec", "--run", "affect.csv"
    )
    assert code == 0
    shown = {tuple(line.split()[1:3]): line.split()[3] for line in measured(out)}
    assert shown["violence", "map"] == "0.6174"
    assert (shown["valence", "accuracy_all"], shown["arousal", "accuracy_all"]) == ("0.6817", "0.6633")
    assert "99% of the clips tie with another; their order, and so AP, follows file names" in " ".join(
        out.split()
    )
    assert err == ""


def test_trec_files_of_several_topics_have_a_mean(task, shared_data):
    folder = shared_data / "audits" / "trec_eval"
    code, out, _ = task(
        "score", "--trec", folder / "results.test", "--qrels", folder / "qrels.test", "--double"
    )
    assert code == 0
    found = {line.split()[1]: line.split()[3] for line in measured(out) if line.split()[2] == "map"}
    assert found == {"301": "0.0324", "302": "0.4175", "303": "0.0858", "all": "0.1785"}


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("score",), 2, "give --truth with --run"),
        (("score", "--trec", "a"), 2, "or --trec with --qrels"),
        (("score", "--trec", "nothing", "--qrels", "nothing"), 1, "obygaze: error: nothing"),
        (("check", "nowhere", "--truth", "nothing.csv"), 1, "obygaze: error: nothing.csv"),
        (("labels", "nothing.csv", "--out", "x.csv"), 1, "obygaze: error: nothing.csv"),
        (("train", "s", "m", "--subtask", "fear", "--run", "a"), 2, "Invalid value for '--subtask'"),
        (("train", "s", "m", "--subtask", "affect", "--run", "a b"), 1, "'a b' is no name for a run"),
    ],
)
def test_a_mistake_is_one_clear_message(task, arguments, code, message):
    found, out, err = task(*arguments)
    assert (found, out) == (code, "")
    assert message in err
    assert "Traceback" not in err
