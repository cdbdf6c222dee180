"""`obygaze evaluate` from a sealed store and a manifest file to a table and a run folder."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from obygaze.cli import main
from obygaze_features.manifest import Clip, Manifest, write_manifest
from obygaze_features.store.testing import seal_arrays
from obygaze_models.prediction.saved_model import load_model

N_MOVIES, N_CLIPS, D = 4, 30, 6
BROKEN = "m1-07"
QUICK = ("--task", "hn_s", "--model", "mlp")
"""The codebook has several tasks, so one is named; one model keeps the tests short."""


def films(folder: Path, backbones: tuple[str, ...] = ("descriptors",)) -> None:
    """Keep films.csv and the store films-1.0.0: S clips lie 4 deviations away; one clip failed.

    S clips have a visual concept, but every second only one that is heard.
    """
    rng = np.random.default_rng(0)
    clips = []
    for movie in range(N_MOVIES):
        for place in range(N_CLIPS):
            level = ("S", "HN", "EN", "NS", "EN")[place % 5]
            concept = "Look" if place % 2 else "Speech"
            concepts = (concept,) if level in ("S", "HN") else ()
            clips.append(Clip(f"m{movie}-{place:02}", f"m{movie}", level=level, concepts=concepts))
    frames = rng.normal(size=(len(clips), 2, D)).astype(np.float32)
    frames[:, :, 0] += 4.0 * np.array([[clip.level == "S"] for clip in clips])
    write_manifest(Manifest(tuple(clips), folder), folder / "films.csv")
    movies = {clip.clip_id: clip.movie for clip in clips}
    arrays = {"pooled": frames.mean(axis=1), "frames": frames}
    failed = {BROKEN: "the file is empty (0 bytes)"}
    seal_arrays(folder / "films", movies, dict.fromkeys(backbones, arrays), failed=failed)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    """A folder with films.csv and films-1.0.0."""
    folder = tmp_path_factory.mktemp("shelf")
    films(folder)
    return folder


@pytest.fixture
def obygaze(monkeypatch, tmp_path, capsys):
    """Run the command line in an empty folder; gives exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        with pytest.raises(SystemExit) as left:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return left.value.code, captured.out, captured.err

    return run


def rows_of(text: str, title: str) -> dict[str, list[str]]:
    """Read a printed table: model -> its cells."""
    lines = text[text.index(title) :].split("\n\n", maxsplit=1)[0].splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith("---"))
    return {line.split()[0]: line.split()[1:] for line in lines[start + 1 :]}


def test_tables_are_printed_and_a_run_kept(obygaze, shelf, tmp_path):
    command = ("evaluate", shelf / "films.csv", shelf / "films", "--task", "hn_s", "--test", "enhn_s")
    code, out, err = obygaze(*command)
    assert code == 0
    pooled = rows_of(out, "all clips pooled")
    assert list(pooled)[:2] == ["linear", "mlp"]
    assert list(pooled)[-6:] == [
        "always_positive",
        "always_negative",
        "random_prevalence",
        "random_half",
        "movie_prior",
        "(chance)",
    ]
    assert min(float(pooled[model][0]) for model in ("linear", "mlp")) > 0.9
    for said in ("train HN vs S", "(EN u HN) vs S", "raw policy", "4 movies", "1 without features"):
        assert said in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 80
    assert "1 excluded: failed: the file is empty (0 bytes)" in err
    (folder,) = Path("runs").iterdir()
    assert re.fullmatch("films-1.0.0-hn_s-enhn_s-raw-seed0-[0-9a-f]{6}", folder.name)
    assert f"run kept in {folder}" in err
    assert sorted(path.name for path in (tmp_path / folder).iterdir()) == [
        "curves.csv",
        "excluded.csv",
        "metrics.csv",
        "predictions.csv",
        "report.md",
        "report.tex",
        "run.json",
        "selection.csv",
    ]
    # Look alone varies, in HN and S alike: the bottleneck is left out or evaluated, and either is said.
    assert ("pcbm_lr" in pooled) != ("pcbm_lr left out" in " ".join(out.split()))


def test_the_same_command_twice_gives_the_same_bytes(obygaze, shelf, tmp_path):
    for name in ("one", "two"):
        assert obygaze("evaluate", shelf / "films.csv", shelf / "films", *QUICK, "--out", name)[0] == 0
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()
        assert str(shelf).encode() not in path.read_bytes()


def test_json_is_one_document_the_same_as_the_file(obygaze, shelf, tmp_path):
    code, out, _ = obygaze("evaluate", shelf / "films.csv", shelf / "films", *QUICK, "--json", "--out", "run")
    assert code == 0
    assert out == (tmp_path / "run" / "run.json").read_text("utf-8")
    record = json.loads(out)["record"]
    assert [record["train"]["name"], *(one["name"] for one in record["tests"])] == ["hn_s", "hn_s"]
    assert record["excluded"] == []


def test_label_policies_are_named_and_what_they_change_is_said(obygaze, shelf):
    command = (
        *("evaluate", shelf / "films.csv", shelf / "films", "--task", "enhn_s", "--model", "linear"),
        "--json",
    )
    _, raw, said = obygaze(*command, "--out", "raw")
    assert "would make EN of" in said
    _, paper, said = obygaze(*command, "--policy", "paper", "--out", "paper")
    assert "label policy paper:" in said
    assert "clips changed level" in said
    shares = [json.loads(out)["record"]["prevalence"]["enhn_s"] for out in (raw, paper)]
    assert shares[0] > 1.5 * shares[1] > 0


def test_a_run_that_is_there_is_replaced_only_when_forced(obygaze, shelf):
    command = ("evaluate", shelf / "films.csv", shelf / "films", *QUICK, "--out", "run")
    assert obygaze(*command)[0] == 0
    code, out, err = obygaze(*command)
    assert (code, out) == (1, "")
    assert err.splitlines()[-1].startswith("obygaze: error: run holds a run already: give --force")
    assert obygaze(*command, "--force")[0] == 0


def test_frames_can_be_pooled_here_and_pooled_features_can_not_again(obygaze, shelf):
    command = ("evaluate", shelf / "films.csv", shelf / "films", *QUICK, "--pool", "mean")
    code, out, _ = obygaze(*command, "--features", "frames", "--json")
    assert code == 0
    assert json.loads(out)["record"]["pool"] == "mean"
    assert obygaze(*command, "--features", "pooled")[0] == 2


def test_one_of_several_backbones_is_named_in_the_runs_folder(obygaze, tmp_path):
    films(tmp_path, ("descriptors", "xclip"))
    code, _, err = obygaze("evaluate", "films.csv", "films", *QUICK)
    assert code == 1
    assert "has several backbones (descriptors, xclip): name one" in err
    assert obygaze("evaluate", "films.csv", "films", *QUICK, "--backbone", "xclip")[0] == 0
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.startswith("films-xclip-1.0.0-hn_s-hn_s-raw-seed0-")


@pytest.mark.long
def test_runs_that_differ_have_folders_that_do(obygaze, shelf, tmp_path):
    films(tmp_path, ("descriptors",))
    other = tmp_path / "other.csv"
    other.write_text((shelf / "films.csv").read_text("utf-8").replace("m3-29,m3,", "m3-29,m2,"), "utf-8")
    for more in (
        (),
        ("--features", "frames"),
        ("--features", "frames", "--pool", "mean"),
        ("--policy", "paper"),
        ("--seed", "1"),
        ("--seeds", "2"),
        ("--imbalance", "weights"),
        ("--imbalance", "subsample"),
    ):
        assert obygaze("evaluate", shelf / "films.csv", shelf / "films", *QUICK, *more)[0] == 0
    assert obygaze("evaluate", other, shelf / "films", *QUICK)[0] == 0
    assert len(list((tmp_path / "runs").iterdir())) == 9
    code, _, err = obygaze("evaluate", shelf / "films.csv", shelf / "films", *QUICK)
    assert code == 1
    assert "holds a run already" in err


def test_what_is_done_about_the_larger_class_is_in_run_and_model(obygaze, shelf, tmp_path):
    command = ("evaluate", shelf / "films.csv", shelf / "films", *QUICK, "--imbalance", "subsample")
    code, out, err = obygaze(*command, "--save", "mlp", "--out", "run", "--json")
    assert code == 0
    assert json.loads(out)["record"]["models"]["mlp"]["imbalance"] == "'subsample'"
    assert "mlp of all 4 movies kept in run/mlp.model" in err
    assert load_model(tmp_path / "run" / "mlp.model").card.parameters["imbalance"] == "subsample"
    unnamed = ("evaluate", shelf / "films.csv", shelf / "films", "--task", "hn_s", "--imbalance", "weights")
    code, out, err = obygaze(*unnamed, "--out", tmp_path / "all", "--json")
    assert json.loads(out)["record"]["models"]["mlp"]["imbalance"] == "'weights'", err
    code, out, err = obygaze(*command[:3], "--imbalance", "smote")
    assert (code, out) == (2, "")
    assert "'none', 'weights', 'subsample'" in err


def test_ad_hoc_levels_concepts_and_ordered_levels_are_tasks(obygaze, shelf):
    films, model = (shelf / "films.csv", shelf / "films"), ("--model", "linear")
    ad_hoc = ("--negative", "HN", "--positive", "S")
    for name, asked in (("named", QUICK[:2]), ("ad-hoc", ad_hoc)):
        assert obygaze("evaluate", *films, *asked, *model, "--out", name)[0] == 0
    scores = [Path(name, "metrics.csv").read_text("utf-8").split("\n")[1] for name in ("named", "ad-hoc")]
    assert scores[0].split(",")[3:] == scores[1].split(",")[3:]
    code, out, _ = obygaze("evaluate", *films, "--task", "concept:Look", *model)
    assert code == 0
    assert "Look, present or not" in out
    code, out, _ = obygaze("evaluate", *films, "--task", "levels", *model)
    assert code == 0
    assert "kappa (quadratic) by movie" in out
    code, _, err = obygaze("evaluate", *films, *QUICK, *ad_hoc)
    assert (code, err.count("\n")) == (1, 1)
    assert "--task names a task and --negative and --positive make one" in err


def test_arguments_the_wrong_way_round_are_said(obygaze, shelf):
    code, out, err = obygaze("evaluate", shelf / "films-1.0.0", shelf / "films.csv", *QUICK)
    assert (code, out) == (2, "")
    assert "the order is MANIFEST STORE" in err


def test_hard_negatives_are_compared_with_easy_ones(obygaze, shelf):
    """What models were trained on may differ; what they are tested on may not."""
    for name, task in (("hard", "hn_s"), ("easy", "en_s")):
        command = ("evaluate", shelf / "films.csv", shelf / "films", "--task", task, "--test", "enhn_s")
        assert obygaze(*command, "--model", "linear", "--out", name)[0] == 0
    code, out, _ = obygaze("compare", "hard", "easy", "--out", "compared")
    assert code == 0
    assert "A: linear of hard, trained on HN vs S" in " ".join(out.split())
    assert "B: linear of easy, trained on EN vs S" in " ".join(out.split())
    assert {"compare.csv", "compare.json", "compare.md", "compare.tex"} <= {
        path.name for path in Path("compared").iterdir()
    }
    code, out, err = obygaze("evaluate", shelf / "films.csv", shelf / "films", *QUICK, "--out", "other")
    code, _, err = obygaze("compare", "hard", "other", "--model", "linear", "--against", "mlp")
    assert code == 1
    assert "their test clips differ" in err


def test_seeds_are_trained_together_and_compared_by_film(obygaze, shelf, tmp_path):
    for name, seeds in (("three", 3), ("one", 1)):
        code, out, _ = obygaze(
            "evaluate", shelf / "films.csv", shelf / "films", *QUICK, "--seeds", seeds, "--out", name
        )
        assert code == 0
        assert ("standard deviation between 3 seeds" in out) == (seeds == 3)
    assert (tmp_path / "three" / "seeds.csv").is_file()
    code, out, _ = obygaze("compare", "three", "one", "--json")
    document = json.loads(out)["record"]
    assert (document["a"]["seeds"], document["b"]["seeds"]) == ([0, 1, 2], [0])
    assert document["n_movies"] == 4
    code, out, _ = obygaze("compare", "three", "one")
    assert ", mean of 3 seeds" in " ".join(out.split())


def write_levels(path: Path, levels: dict[str, list[str]]) -> Path:
    """Write a manifest with the given levels of the first clips of each movie."""
    clips = [
        Clip(f"{movie}-{place:02}", movie, level=level)
        for movie, named in levels.items()
        for place, level in enumerate(named)
    ]
    write_manifest(Manifest(tuple(clips), path.parent), path)
    return path


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        (
            {f"m{movie}": ["EN", "HN"] for movie in range(4)},
            "no positive clip to be trained on: 4 clips with features",
        ),
        ({"m0": ["S", "HN"], "m1": ["S", "HN"]}, "leaving one movie out needs at least 3 movies"),
        ({"other": ["S", "HN"]}, "none of the manifest's 2 annotated clips has features in store films"),
        ({"m0": ["NS"]}, "the manifest has no clip of level EN, HN, S among its 1"),
    ],
)
def test_clips_that_can_not_be_evaluated_are_one_clear_line(obygaze, shelf, tmp_path, levels, message):
    code, out, err = obygaze(
        "evaluate", write_levels(tmp_path / "other.csv", levels), shelf / "films", *QUICK
    )
    assert (code, out) == (1, "")
    assert err.startswith(f"obygaze: error: {message}")
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "runs").exists()


def test_an_unknown_task_a_missing_store_and_a_missing_manifest_are_one_line(obygaze, shelf):
    for arguments in (
        (shelf / "films.csv", shelf / "films", "--task", "en_hn"),
        (shelf / "films.csv", shelf / "nothing", *QUICK),
        (shelf / "nothing.csv", shelf / "films", *QUICK),
        (shelf / "films.csv", shelf / "films", "--task", "hn_s", "--model", "lnear"),
        (shelf / "films.csv", shelf / "films", "--task", "concept:Bdy"),
        (shelf / "films.csv", shelf / "films", "--negative", "HNN", "--positive", "S"),
    ):
        code, out, err = obygaze("evaluate", *arguments)
        assert (code, out) == (1, "")
        assert err.startswith("obygaze: error: ")
        assert len(err.splitlines()) == 1


def test_help_shows_examples_and_the_default_policy(obygaze):
    code, out, _ = obygaze("evaluate", "--help")
    assert code == 0
    assert "Examples:" in out
    assert "[default: raw]" in " ".join(out.split())
