"""The JSON schemas of docs/ follow from the code; they and the code agree about documents."""

import copy
import json
import runpy
import zipfile
from pathlib import Path

import jsonschema
import pytest

from obygaze_models.dataset import load_dataset
from obygaze_models.errors import ModelError, RunError
from obygaze_models.evaluation.evaluate import evaluate
from obygaze_models.evaluation.run import check_document
from obygaze_models.evaluation.run_folder import to_json
from obygaze_models.persistence.card import parse_card
from tests.planted_models import FILMS, corpus

DOCS = Path(__file__).parents[1] / "docs"
DOCUMENTS = runpy.run_path(str(DOCS / "schemas.py"))["DOCUMENTS"]
FROZEN = Path(__file__).parent / "persistence" / "frozen"


def validator(name):
    return jsonschema.Draft202012Validator(json.loads((DOCS / name).read_text("utf-8")))


def changed(result, path, value):
    """Change one field, named by its keys; None takes it out."""
    result = copy.deepcopy(result)
    *above, last = path
    holder = result
    for key in above:
        holder = holder[key]
    if value is None:
        del holder[last]
    else:
        holder[last] = value
    return result


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_schema_is_the_one_of_the_code(name):
    """`make schema` writes it anew."""
    written = json.loads((DOCS / name).read_text("utf-8"))
    assert DOCUMENTS[name]() == written
    jsonschema.Draft202012Validator.check_schema(written)


CARDS = {
    path.name: json.loads(zipfile.ZipFile(path).read("card.json"))
    for path in sorted(FROZEN.glob("*_4_*.model"))
}


@pytest.mark.parametrize("name", CARDS)
def test_frozen_cards_obey_the_schema(name):
    validator("model-card.schema.json").validate(CARDS[name])
    parse_card(CARDS[name], name)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("seed",), None, "'seed'"),
        (("target", "classes", 0), "a", r"'target.classes'"),
        (("target", "hook"), "rm", r"'target.hook'"),
        (("pool",), "median", r"'pool'.*'median'"),
        (("calibration",), {"slope": 1.0}, "'calibration'"),
    ],
)
def test_a_wrong_card_is_refused_by_code_and_schema(path, value, message):
    wrong = changed(CARDS["protocol_4_mlp.model"], path, value)
    with pytest.raises(ModelError, match=message):
        parse_card(wrong, "m.model")
    if path != ("target", "hook"):
        assert not validator("model-card.schema.json").is_valid(wrong)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    data = load_dataset(*corpus(tmp_path_factory.mktemp("run"), "films", FILMS[:4]))
    made = json.loads(to_json(evaluate(data, ["linear"], "calm_violent")))
    validator("run-record.schema.json").validate(made)
    assert check_document(made, "run.json") == made["record"]
    return made


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("record", "seeds"), None, r"'record.seeds'"),
        (("record", "tests", 0, "title"), None, r"'record.tests\[0\].title'"),
        (("record", "folds", 1, "seed"), "a", r"'record.folds\[1\].seed'.*'a'"),
        (("record", "codebook"), "obygaze12", r"'record.codebook'"),
    ],
)
def test_a_wrong_record_is_refused_by_code_and_schema(run, path, value, message):
    wrong = changed(run, path, value)
    with pytest.raises(RunError, match=message):
        check_document(wrong, "run.json")
    assert not validator("run-record.schema.json").is_valid(wrong)


def test_a_record_may_have_further_fields(run):
    """`evaluate(origin=...)` adds them."""
    more = changed(run, ("record", "annotators"), ["a", "b"])
    validator("run-record.schema.json").validate(more)
    assert check_document(more, "run.json")["annotators"] == ["a", "b"]
