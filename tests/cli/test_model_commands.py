"""`obygaze predict`, `explain` and `model inspect`, from a file and a sealed store to what is printed."""

import csv
import json
import re
from pathlib import Path

import pytest

from obygaze.cli import main
from obygaze_features.manifest import write_manifest
from tests.planted_models import corpus, make_shelf

OBYGAZE12 = ("obygaze12", "ObyGaze12", "hn_s", "objectif", "Body", " HN", " EN")


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    """Models of one corpus; `more`, two films of another, one of them known; `alien`, a film unlike all."""
    folder = tmp_path_factory.mktemp("shelf")
    made = make_shelf(folder)
    _, manifest = corpus(folder, "more", ("g0", "f0"), seed=1)
    write_manifest(manifest, folder / "more.csv")
    corpus(folder, "alien", ("g8",), seed=2, shift=30.0)
    return made


@pytest.fixture
def obygaze(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        with pytest.raises(SystemExit) as left:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        assert not [word for word in OBYGAZE12 if word in captured.out + captured.err]
        return left.value.code, captured.out, captured.err

    return run


def test_a_kept_model_scores_the_clips_of_other_stores(obygaze, shelf):
    command = ("predict", shelf.paths["pcbm_lr"], shelf.folder / "more", shelf.folder / "alien")
    code, out, err = obygaze(*command, "--manifest", shelf.folder / "more.csv", "--out", "p.csv")
    assert (code, out) == (0, "")
    rows = list(csv.DictReader(Path("p.csv").read_text("utf-8").splitlines()))
    assert [row["movie"] for row in rows] == ["f0"] * 30 + ["g0"] * 29 + ["g8"] * 29
    assert {row["video"] for row in rows} == {"f0.mp4", "g0.mp4", ""}
    assert {row["p"] for row in rows if row["movie"] == "g8"} == {""}
    assert "PCBM-LR trained for calm_violent (codebook violence) on " in err
    assert "30 clips are of films that the model was trained on: their scores are no predictions" in err
    assert "g8: 29 of 29 clips are unlike any that the model was trained on, and get no probability" in err
    assert "excluded 2: failed: the file is empty (0 bytes) (g0-00, ...)" in err
    first = Path("p.csv").read_bytes()
    code, _, err = obygaze(*command, "--out", "p.csv")
    assert (code, err) == (
        1,
        "obygaze: error: p.csv exists already: give --force to replace it, or choose another name\n",
    )
    assert obygaze(*command, "--manifest", shelf.folder / "more.csv", "--out", "p.csv", "--force")[0] == 0
    assert Path("p.csv").read_bytes() == first


def test_predictions_are_printed_as_a_table_or_as_one_json_document(obygaze, shelf):
    code, out, _ = obygaze("predict", shelf.paths["linear"], shelf.folder / "more")
    assert code == 0
    headings = "clip_id start_s logit p p_low p_high called unlike flags"
    assert out.splitlines()[0].split() == headings.split()
    assert len(out.splitlines()) == 61
    code, out, _ = obygaze("predict", shelf.paths["pcbm_dt"], shelf.folder / "more", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["model"]["codebook"]["name"] == "violence"
    assert len(found["clips"]) == 59
    assert found["excluded"] == [{"reason": "failed: the file is empty (0 bytes)", "clip_ids": ["g0-00"]}]


def test_the_card_of_an_older_model_is_printed(capsys):
    frozen = Path(__file__).parents[1] / "persistence" / "frozen" / "protocol_2.model"
    with pytest.raises(SystemExit) as left:
        main(["model", "inspect", str(frozen)])
    out, _ = capsys.readouterr()
    assert left.value.code == 0
    assert "format 2" in out
    assert "calibrated  no" in out


def test_a_decision_is_explained_in_words_and_as_json(obygaze, shelf):
    command = ("explain", shelf.paths["pcbm_lr"], shelf.folder / "more", "--clip", "g0-14")
    code, out, _ = obygaze(*command, "--set", "Gun=0.95", "--set", "Dim light=0.05")
    assert code == 0
    assert out.splitlines()[0] == "clip g0-14 of film g0, 8 to 12 s"
    said = " ".join(out.split())
    assert re.search(r"calm_violent: called \w+ \(\w+\) probability 0\.\d\d \(.*\); threshold 0\.\d\d", said)
    assert "With Gun at quantile 0.95, Dim light at quantile 0.05: called " in out
    code, out, _ = obygaze(*command, "--set", "Gun=0.95", "--json")
    found = json.loads(out)
    assert code == 0
    parts = found["parts"]
    total = parts["base"] + sum(one["contribution"] for one in parts["contributions"])
    assert total == pytest.approx(found["decision"]["logit"], abs=1e-9)
    assert found["set_to"] == {"Gun": 0.95}
    assert found["decision"]["called"] == (found["decision"]["p"] >= found["threshold_p"])


@pytest.mark.parametrize("name", ["linear", "mlp", "pcbm_lr", "pcbm_dt", "cav", "bank"])
def test_a_card_is_printed(obygaze, shelf, name):
    code, out, _ = obygaze("model", "inspect", shelf.paths[name])
    assert code == 0
    lines = dict(line.split(maxsplit=1) for line in out.splitlines() if not line.startswith(" "))
    assert lines["codebook"].startswith("violence ")
    assert lines["reads"] == "descriptors, pooled (as stored), 8 features"
    code, out, _ = obygaze("model", "inspect", shelf.paths[name], "--json")
    assert code == 0
    assert json.loads(out)["movies"] == ["f0", "f1", "f2", "f3", "f4", "f5"]


def test_arguments_in_another_order_are_recognised(obygaze, shelf):
    code, out, err = obygaze("predict", shelf.folder / "more", shelf.paths["linear"])
    assert (code, out) == (1, "")
    assert "more is a store and" in err
    assert err.endswith("linear.model a file: the order is MODEL STORE..., the model first\n")
    assert obygaze("explain", shelf.folder / "more", shelf.paths["linear"], "--clip", "g0-07")[2] == err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("predict", "more.csv", "more"), "more.csv: not a whole model file"),
        (("predict", "nothing.model", "more"), "nothing.model: No such file or directory"),
        (("predict", "models", "more"), "models is a folder, not the file of a model"),
        (("predict", "models/linear.model", "nowhere"), "nowhere: no such store"),
        (
            ("explain", "models/pcbm_lr.model", "more", "--clip", "g0-7"),
            "no clip 'g0-7' in more: did you mean 'g0-",
        ),
        (
            ("explain", "models/linear.model", "more", "--clip", "g0-07"),
            "model linear decides by no concepts",
        ),
        (
            ("explain", "models/pcbm_lr.model", "more", "--clip", "g0-07", "--set", "gun=1"),
            "unknown concept 'gun': did you mean 'Gun'?",
        ),
        (
            ("explain", "models/pcbm_lr.model", "more", "--clip", "g0-07", "--set", "Gun=95"),
            "--set Gun=95: expected CONCEPT=QUANTILE",
        ),
        (("model", "inspect", "more-1.0.0"), "is a folder, not the file of a model"),
    ],
)
def test_bad_input_is_one_line(obygaze, shelf, arguments, message):
    there = [str(shelf.folder / one) if (shelf.folder / one).exists() else one for one in arguments]
    there = [str(shelf.folder / "more") if one == "more" else one for one in there]
    code, out, err = obygaze(*there)
    assert (code, out) == (1, "")
    assert len(err.splitlines()) == 1
    assert err.startswith("obygaze: error: ")
    assert message in err
