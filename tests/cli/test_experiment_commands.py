"""`obygaze table2` to `obygaze paper`, from sealed stores and a manifest file to a folder."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from obygaze_features.manifest import Clip, Manifest, write_manifest
from obygaze_features.store.testing import seal_arrays
from obygaze_models.commands import published
from obygaze_models.experiments.material import DatasetError
from obygaze_models.protocol import VISUAL_CONCEPTS, ProtocolError
from obygaze_models.report import CONTENTS, OutputError, new_folder

N_MOVIES, N_CLIPS, D = 5, 40, 6
BROKEN = "m1-07"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """films.csv; a store whose S clips lie 3 deviations away, and one of random weights that lacks a clip."""
    folder = tmp_path_factory.mktemp("corpus")
    rng = np.random.default_rng(0)
    clips = []
    for movie in range(N_MOVIES):
        for place in range(N_CLIPS):
            level = ("EN", "HN", "S")[place % 3]
            marked = rng.random(len(VISUAL_CONCEPTS)) < (0.5 if level != "EN" else 0)
            marked[0] |= level != "EN"
            concepts = tuple(np.array(VISUAL_CONCEPTS)[marked].tolist())
            clips.append(Clip(f"m{movie}-{place:02}", f"m{movie}", level=level, concepts=concepts))
    write_manifest(Manifest(tuple(clips), folder), folder / "films.csv")
    write_manifest(
        Manifest(tuple(Clip(clip.clip_id, clip.movie, level=clip.level) for clip in clips), folder),
        folder / "unmarked.csv",
    )
    movie_of = {clip.clip_id: clip.movie for clip in clips}
    X = rng.normal(size=(len(clips), D)).astype(np.float32)
    X[:, 0] += 3.0 * np.array([clip.level == "S" for clip in clips])
    seal_arrays(folder / "good", movie_of, {"xclip": {"pooled": X}})
    seal_arrays(
        folder / "random",
        movie_of,
        {"vivit": {"pooled": rng.normal(size=X.shape).astype(np.float32)}},
        failed={BROKEN: "the file is empty (0 bytes)"},
        untrained=True,
    )
    return folder


def run(name, corpus, out, *more, stores=("good",), manifest="films.csv"):
    arguments = [*(str(corpus / store) for store in stores), "--manifest", str(corpus / manifest)]
    return CliRunner().invoke(
        getattr(published, name), [*arguments, "--out", str(out), *more], catch_exceptions=False
    )


def test_table2_leaves_four_formats_predictions_and_a_list(corpus, tmp_path):
    done = run("table2", corpus, tmp_path / "out")
    assert done.exit_code == 0
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == sorted(
        [
            CONTENTS,
            *(f"{what}-strict-xclip.csv" for what in ("inner-curves", "inner-losses", "predictions")),
            *(f"table2-strict.{suffix}" for suffix in ("csv", "json", "md", "tex")),
        ]
    )
    assert "protocol strict" in done.stdout
    tables = [
        line for line in done.stdout.splitlines() if line[:1] not in {"", " "} and "protocol" not in line
    ]
    assert max(map(len, tables)) <= 80
    # With 5 films no exact test of four comparisons can reach 5 %.
    assert "too few films to tell" in done.stdout
    assert "0.82 (0.03)" in done.stdout


def test_one_command_redoes_everything_from_two_stores_and_leaves_one_index(corpus, tmp_path):
    done = run("paper", corpus, tmp_path / "out", "--protocol", "strict", stores=("good", "random"))
    assert done.exit_code == 0
    index = (tmp_path / "out" / "index.md").read_text(encoding="utf-8")
    listed = json.loads((tmp_path / "out" / CONTENTS).read_text(encoding="utf-8"))
    for stem in ("table2", "table4", "figure3", "figure5", "figure6"):
        assert f"({stem}-strict.md)" in index
    for name in listed:
        if name.endswith((".md", ".png", ".csv", ".tex", ".json")) and name != "index.md":
            assert f"({name})" in index, name
    assert "**UNTRAINED: the weights of vivit are random.**" in index
    for name in listed:
        if name.endswith(".md") and name not in {"index.md", "figure2.md"}:
            text = (tmp_path / "out" / name).read_text(encoding="utf-8")
            assert "vivit (untrained)" in text
            # A clip that one store lacks is left out of both.
            assert "199 clips of 5 films; 1 excluded for want of features, from all models alike" in text


def test_figure2_needs_a_manifest_alone(corpus, tmp_path):
    done = CliRunner().invoke(published.figure2, [str(corpus / "films.csv"), "--out", str(tmp_path / "out")])
    assert done.exit_code == 0
    assert "label policy raw, 200 clips" in done.stdout
    assert {"figure2.png", "figure2.svg", "figure2.tex"} <= {
        path.name for path in (tmp_path / "out").iterdir()
    }


def test_json_is_one_document_on_stdout(corpus, tmp_path):
    done = run("table4", corpus, tmp_path / "out", "--json")
    (document,) = json.loads(done.stdout)
    assert document["name"] == "table4-strict"
    assert len(document["rows"]) == N_MOVIES
    assert document["record"]["label_policy"] == "paper"


def test_without_concepts_the_probe_is_tested_and_the_rest_is_said_to_be_missing(corpus, tmp_path):
    done = run("table2", corpus, tmp_path / "out", "--policy", "raw", manifest="unmarked.csv")
    assert "the PCBM rows are not made" in done.stdout
    done = run("figure3", corpus, tmp_path / "none", "--policy", "raw", manifest="unmarked.csv")
    assert "figure3, strict protocol: not made" in done.stderr


def test_a_manifest_without_the_released_folds_has_no_paper_protocol(corpus, tmp_path):
    with pytest.raises(
        ProtocolError, match=r"no folds in a column.*or use the strict protocol \(--protocol strict\)"
    ):
        run("table2", corpus, tmp_path / "out", "--protocol", "paper")
    assert list(tmp_path.iterdir()) == []


def test_it_is_said_how_many_labels_the_policy_reads_otherwise(corpus, tmp_path):
    unmarked = ["--manifest", str(corpus / "unmarked.csv"), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(published.table4, [str(corpus / "good"), *unmarked])
    assert isinstance(done.exception, ProtocolError)
    told = "label policy paper: 130 of 200 clips changed level, 0 left out; --policy raw takes levels as"
    assert done.stderr == f"{told} annotated\n"
    done = run("table4", corpus, tmp_path / "out", "--policy", "raw", manifest="unmarked.csv")
    assert "label policy" not in done.stderr


def test_an_output_is_replaced_only_when_forced_and_nothing_else_ever(corpus, tmp_path):
    out = tmp_path / "out"
    run("table4", corpus, out)
    with pytest.raises(OutputError, match="holds an output already: give --force"):
        run("table4", corpus, out)
    assert run("table4", corpus, out, "--force").exit_code == 0
    (out / "thesis.txt").write_text("do not delete")
    with pytest.raises(OutputError, match=r"not an output of ours \(thesis.txt\)"):
        run("table4", corpus, out, "--force")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").touch()
    with pytest.raises(OutputError, match=f"no {CONTENTS}"):
        run("table4", corpus, tmp_path / "mine", "--force")
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="is a file"):
        run("table4", corpus, tmp_path / "file", "--force")


@pytest.mark.parametrize("contents", ["[" * 100_000, "{", "1"], ids=["nested", "torn", "no list"])
def test_a_folder_whose_list_of_files_is_none_is_not_replaced(tmp_path, contents):
    (tmp_path / CONTENTS).write_text(contents)
    with (
        pytest.raises(OutputError, match=f"{CONTENTS} is not the list of an output's files"),
        new_folder(tmp_path, force=True),
    ):
        pass
    assert (tmp_path / CONTENTS).read_text() == contents


def test_the_same_store_twice_is_refused(corpus, tmp_path):
    with pytest.raises(DatasetError, match="given twice"):
        run("table2", corpus, tmp_path / "out", stores=("good", "good"))


def test_every_command_shows_how_it_is_used():
    for name in ("table2", "table4", "figure2", "figure3", "figure5", "figure6", "paper"):
        shown = CliRunner().invoke(getattr(published, name), ["--help"])
        assert "Examples:" in shown.output
        assert f"obygaze {name} " in shown.output
