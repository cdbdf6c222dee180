"""`obygaze paper`, from a manifest file and sealed stores to a folder."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from obygaze_features.errors import OutputError
from obygaze_features.manifest import Clip, Codebook, Level, Manifest, Task, write_manifest
from obygaze_features.store.testing import seal_arrays
from obygaze_models.errors import DatasetError, ProtocolError
from obygaze_models.report import CONTENTS, new_folder
from obygaze_studies.commands import paper_commands as paper
from obygaze_studies.obygaze12.corpus import VISUAL_CONCEPTS

N_MOVIES, N_CLIPS, D = 5, 24, 6
BROKEN = "m1-07"
BACKBONES = ("xclip", "vivit")
STEMS = ("table2", "table4", "figure3", "figure5", "figure6")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """films.csv; a store whose S clips lie 3 deviations away, and one of random weights that lacks a clip."""
    folder = tmp_path_factory.mktemp("corpus")
    rng = np.random.default_rng(0)
    clips = []
    for movie in range(N_MOVIES):
        for place in range(N_CLIPS):
            level = ("EN", "HN", "S")[place % 3]
            concepts = ()
            if level != "EN":
                # The first always, so that no level changes under the paper policy; the others in no clip.
                concepts = VISUAL_CONCEPTS[: 1 + int(rng.random() < 0.5)]
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
    arguments = [str(corpus / manifest), *(str(corpus / store) for store in stores)]
    return CliRunner().invoke(
        getattr(paper, name), [*arguments, "--out", str(out), *more], catch_exceptions=False
    )


@pytest.fixture(scope="module")
def everything(corpus, tmp_path_factory):
    """All of the strict protocol, from both stores."""
    out = tmp_path_factory.mktemp("everything") / "out"
    done = run("all_", corpus, out, "--protocol", "strict", stores=("good", "random"))
    assert done.exit_code == 0
    return out


@pytest.mark.long
def test_every_table_leaves_four_formats_and_the_runs_their_predictions(everything):
    names = {path.name for path in everything.iterdir()}
    kept = {
        f"{what}-strict-{one}.csv" for what in ("curves", "selection", "predictions") for one in BACKBONES
    }
    assert {CONTENTS, "index.md", *kept} <= names
    for stem in STEMS:
        assert {f"{stem}-strict.{suffix}" for suffix in ("csv", "json", "md", "tex")} <= names


@pytest.mark.long
def test_table_2_says_what_five_movies_cant_and_shows_no_printed_figure(everything):
    text = (everything / "table2-strict.md").read_text(encoding="utf-8")
    # With 5 movies no exact test of eight comparisons can reach 5 %.
    assert "too few movies to tell" in text
    # These are other films than the papers'.
    assert "0.82 (0.03)" not in text
    # Baselines look at no feature: one row a cell, whatever the number of stores.
    assert text.count("| Movie prior ") == 4
    assert text.count("| Logistic regression ") == 8


@pytest.mark.long
def test_one_index_links_all_that_is_there(everything):
    index = (everything / "index.md").read_text(encoding="utf-8")
    for name in json.loads((everything / CONTENTS).read_text(encoding="utf-8")):
        if name.endswith((".md", ".pdf", ".png", ".svg", ".csv", ".tex", ".json")) and name != "index.md":
            assert f"({name})" in index, name
    assert "**UNTRAINED: the weights of vivit are random.**" in index


@pytest.mark.long
def test_random_weights_and_clips_left_out_are_said_in_every_table(everything):
    for stem in STEMS:
        text = (everything / f"{stem}-strict.md").read_text(encoding="utf-8")
        assert "vivit (untrained)" in text
        # A clip that one store lacks is left out of both.
        left = f"{N_MOVIES * N_CLIPS - 1} clips of {N_MOVIES} movies; 1 excluded for want of features"
        assert f"{left}, from all models alike" in text


def test_figure2_needs_a_manifest_alone(corpus, tmp_path):
    done = CliRunner().invoke(paper.figure2, [str(corpus / "films.csv"), "--out", str(tmp_path / "out")])
    assert done.exit_code == 0
    assert f"label policy raw, {N_MOVIES * N_CLIPS} clips" in done.stdout
    assert {"figure2.pdf", "figure2.png", "figure2.svg", "figure2.tex"} <= {
        path.name for path in (tmp_path / "out").iterdir()
    }


def test_json_is_one_document_on_stdout(corpus, tmp_path):
    done = run("figure5", corpus, tmp_path / "out", "--json")
    (document,) = json.loads(done.stdout)
    assert document["name"] == "figure5-strict"
    assert document["rows"]
    assert document["record"]["label_policy"] == "paper"


def test_without_concepts_what_needs_them_is_said_to_be_missing(corpus, tmp_path):
    done = run("figure3", corpus, tmp_path / "none", "--policy", "raw", manifest="unmarked.csv")
    assert "figure3, strict protocol: not made" in done.stderr


def test_a_manifest_without_the_released_folds_has_no_paper_protocol(corpus, tmp_path):
    with pytest.raises(
        ProtocolError, match=r"no folds in a column.*or use the strict protocol \(--protocol strict\)"
    ):
        run("table2", corpus, tmp_path / "out", "--protocol", "paper")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "option"), [("figure5", ["--depth", "10"]), ("figure3", ["--choose-c"])])
def test_what_is_of_the_paper_protocol_alone_is_refused_under_strict(corpus, tmp_path, name, option):
    outcome = run(name, corpus, tmp_path / "out", *option)
    assert outcome.exit_code == 2
    assert f"{option[0]} is for --protocol paper" in outcome.stderr


def test_it_is_said_how_many_labels_the_policy_reads_otherwise(corpus, tmp_path):
    with pytest.raises(ProtocolError):
        run("table4", corpus, tmp_path / "out", manifest="unmarked.csv")
    done = run("figure3", corpus, tmp_path / "out", manifest="unmarked.csv")
    assert done.stderr.startswith("label policy paper: 80 clips changed level, 0 left out\n")


def test_an_output_is_replaced_only_when_forced_and_nothing_else_ever(corpus, tmp_path):
    out = tmp_path / "out"

    def draw(folder, *more):
        return run("figure2", corpus, folder, *more, stores=())

    draw(out)
    with pytest.raises(OutputError, match="holds an output already: give --force"):
        draw(out)
    assert draw(out, "--force").exit_code == 0
    (out / "thesis.txt").write_text("do not delete")
    with pytest.raises(OutputError, match=r"not an output of ours \(thesis.txt\)"):
        draw(out, "--force")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").touch()
    with pytest.raises(OutputError, match=f"no {CONTENTS}"):
        draw(tmp_path / "mine", "--force")
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="is a file"):
        draw(tmp_path / "file", "--force")


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


@pytest.mark.parametrize("arguments", [["good", "films.csv"], ["films.csv", "films.csv"]])
def test_arguments_the_wrong_way_round_are_recognised(corpus, tmp_path, arguments):
    paths = [str(corpus / name) for name in arguments]
    done = CliRunner().invoke(paper.table2, [*paths, "--out", str(tmp_path / "out")])
    assert done.exit_code == 2
    assert "the order is MANIFEST STORE" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["table2", "figure2"])
def test_labels_of_another_codebook_are_refused_in_one_line(corpus, tmp_path, name):
    levels = tuple(map(Level, ("calm", "violent")))
    other = Codebook("violence", "1", levels, tasks=(Task("calm_violent", ("calm",), ("violent",)),))
    clips = tuple(Clip(f"m{m}-{k}", f"m{m}", level="calm") for m in range(3) for k in range(2))
    write_manifest(Manifest(clips, tmp_path, other), tmp_path / "violence.csv")
    stores = [str(corpus / "good")] if name == "table2" else []
    more = ["--policy", "raw"] if name == "table2" else []
    arguments = [str(tmp_path / "violence.csv"), *stores, "--out", str(tmp_path / "out"), *more]
    done = CliRunner().invoke(getattr(paper, name), arguments)
    assert isinstance(done.exception, ProtocolError)
    assert "this manifest's codebook is 'violence'" in str(done.exception)
    assert not (tmp_path / "out").exists()


def test_every_command_shows_how_it_is_used():
    for name in ("all_", "table2", "table4", "figure2", "figure3", "figure5", "figure6"):
        shown = CliRunner().invoke(getattr(paper, name), ["--help"])
        assert "Examples:" in shown.output
        assert f"obygaze paper {name.rstrip('_')} " in shown.output
