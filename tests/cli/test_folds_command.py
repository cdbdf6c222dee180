"""`obygaze folds` prints every fold that a number of ours stands on."""

import gzip
import json

import pytest
from click.testing import CliRunner

from obygaze_features.manifest import (
    Clip,
    Codebook,
    Concept,
    Level,
    Manifest,
    Task,
    import_obygaze12,
    write_manifest,
)
from obygaze_models.errors import ProtocolError
from obygaze_studies.commands.corpus_commands import folds


@pytest.fixture(scope="module")
def manifest(shared_data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("folds")
    write_manifest(import_obygaze12(shared_data / "obygaze12", folder).manifest, folder / "obygaze12.csv")
    return folder / "obygaze12.csv"


@pytest.fixture(scope="module")
def oracle(shared_data):
    with gzip.open(shared_data / "oracles" / "splits.json.gz", "rt", encoding="utf-8") as file:
        return json.load(file)


def run(*arguments):
    result = CliRunner().invoke(folds, [str(argument) for argument in arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def document(*arguments):
    return json.loads(run(*arguments, "--json").stdout)


def test_the_papers_folds_come_with_protocol_policy_and_leaks(manifest, oracle):
    found = document(manifest, "--protocol", "paper", "--task", "hn_s", "--test", "enhn_s")
    assert (found["protocol"], found["policy"]) == ("paper", "released")
    assert [fold["fold"] for fold in found["folds"]] == list(range(8))
    assert [fold["leaks"]["test_in_training"] for fold in found["folds"]] == [40, 32, 31, 33, 32, 34, 34, 33]
    trained = oracle["LinearProbing_KFold"]["02_HN_S"]["folds"]["4"]
    tested = oracle["LinearProbing_KFold"]["02_ENHN_S"]["folds"]["4"]
    assert found["folds"][4]["train"] == trained["train"]["ids"]
    assert found["folds"][4]["validation"] == trained["val"]["ids"]
    assert found["folds"][4]["test"] == tested["test"]["ids"]
    labels = "".join(str(found["labels"][clip_id]) for clip_id in found["folds"][4]["test"])
    assert labels == tested["test"]["labels"]


def test_film_pairs_name_both_films(manifest, oracle):
    found = document(manifest, "--protocol", "paper", "--task", "hn_s", "--test", "enhn_s", "--movies")
    pair = next(fold for fold in found["folds"] if fold["fold"] == "test 2 tt0119822, validation 0 tt0108160")
    assert (pair["test_movie"], pair["validation_movie"]) == ("tt0119822", "tt0108160")
    files = oracle["MovieBySet_KFold"]["files"]
    assert pair["train"] == files["HN_S"]["pairs"]["2"]["0"]["train"]["ids"]
    assert pair["test"] == files["ENHN_S"]["pairs"]["2"]["0"]["test"]["ids"]
    assert len(found["folds"]) == 90


@pytest.mark.parametrize(
    ("against", "experiment"),
    [
        (["EN"], "Sc_HNc_vs_EN"),
        ([], "Sc_HNc_vs_conceptbar"),
        (["HN", "S"], "Sc_HNc_vs_conceptbar_inter_ENbar"),
    ],
)
def test_concepts_come_with_each_choice_of_negatives(manifest, oracle, against, experiment):
    chosen = [word for level in against for word in ("--against", level)]
    found = document(manifest, "--protocol", "paper", "--task", "concept:body", *chosen)
    expected = oracle["XCLIP_Multi_SHN"]["exp"][experiment]["Body"]["5"]
    assert found["task"] == "-vs-".join(["concept:Body", *(["+".join(against)] if against else [])])
    assert found["folds"][5]["train"] == expected["train"]["ids"]
    labels = "".join(str(found["labels"][clip_id]) for clip_id in found["folds"][5]["train"])
    assert labels == expected["train"]["labels"]


def test_strict_is_the_default_and_leaves_one_movie_out(manifest):
    found = document(manifest, "--task", "hn_s", "--test", "enhn_s")
    assert (found["protocol"], found["policy"]) == ("strict", "raw")
    assert len({fold["test_movie"] for fold in found["folds"]}) == 12
    assert all(fold["validation"] == [] for fold in found["folds"])
    assert all(set(fold["leaks"].values()) == {0} for fold in found["folds"])


def test_strict_needs_no_split_files(tmp_path):
    clips = [
        Clip(f"{movie}-{place}", movie, level=level)
        for movie in "abc"
        for place, level in enumerate(["EN", "HN", "NS", "S"])
    ]
    write_manifest(Manifest(tuple(clips), tmp_path), tmp_path / "films.csv")
    found = document(tmp_path / "films.csv", "--task", "hn_s", "--test", "enhn_s")
    assert found["folds"][0]["train"] == ["b-1", "b-3", "c-1", "c-3"]
    assert found["folds"][0]["test"] == ["a-0", "a-1", "a-3"]
    with pytest.raises(ProtocolError, match="no folds in a column fold_hn_s"):
        run(tmp_path / "films.csv", "--task", "hn_s", "--protocol", "paper")


def test_the_table_shows_sizes_and_says_that_it_leaks(manifest):
    shown = run(manifest, "--protocol", "paper", "--task", "hn_s", "--test", "enhn_s").output
    assert "LEAKS: 31 to 40 of 103 test clips are in training" in shown
    assert "51 clips of the split files are left out" in shown
    assert "protocol paper, label policy released" in shown
    strict = run(manifest, "--task", "hn_s").output
    assert "0 tt0108160" in strict


@pytest.mark.parametrize(
    "arguments",
    [
        ["--task", "hn_s", "--protocol", "paper", "--policy", "raw"],
        ["--task", "hn_s", "--movies"],
        ["--task", "hn_s", "--against", "EN"],
        ["--task", "hn_s", "--test", "concept:Body"],
    ],
)
def test_what_does_not_go_together_is_a_usage_error(manifest, arguments):
    assert run(manifest, *arguments).exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--movies", "--task", "concept:Body"], "--movies pairs films"),
        (["--task", "concept:Body", "--against", "HN"], "tells a concept's clips from EN"),
        (["--task", "levels"], "has the tasks en_s, hn_s, enhn_s, and no levels"),
    ],
)
def test_folds_that_the_paper_does_not_have_are_refused(manifest, arguments, words):
    with pytest.raises(ProtocolError, match=words):
        run(manifest, "--protocol", "paper", *arguments)


def test_a_task_must_be_named_where_there_are_several(manifest):
    with pytest.raises(ProtocolError, match="expected one of en_s, hn_s, enhn_s, concept:NAME, levels"):
        run(manifest)


def test_any_codebook_has_folds_and_its_only_task_needs_no_name(tmp_path):
    levels = (Level("calm"), Level("unsure", label=False), Level("violent"))
    book = Codebook(
        "violence",
        "1",
        levels,
        (Concept("Gun", visual=True),),
        (Task("calm_violent", ("calm",), ("violent",)),),
    )
    clips = tuple(
        Clip(f"{movie}-{place}", movie, level=level, concepts=("Gun",) if level == "violent" else ())
        for movie in "abc"
        for place, level in enumerate(["calm", "unsure", "violent"])
    )
    write_manifest(Manifest(clips, tmp_path, book), tmp_path / "films.csv")
    found = document(tmp_path / "films.csv")
    assert (found["task"], found["codebook"]["name"]) == ("calm_violent", "violence")
    assert found["folds"][0]["test"] == ["a-0", "a-2"]
    assert found["labels"]["a-2"] == 1
    gun = document(tmp_path / "films.csv", "--task", "concept:Gun")
    assert gun["folds"] == found["folds"]
    assert "EN" not in json.dumps(found)
    with pytest.raises(ProtocolError, match=r"the paper protocol is of the levels.*codebook is 'violence'"):
        run(tmp_path / "films.csv", "--protocol", "paper")


def test_the_same_command_prints_the_same_bytes(manifest):
    arguments = (manifest, "--protocol", "paper", "--task", "concept:look", "--json")
    assert run(*arguments).stdout_bytes == run(*arguments).stdout_bytes
