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


REMOVED = object()


def with_field(document, keys, value):
    """Return a copy of a document in which the field that is reached by `keys` is changed, or `REMOVED`."""
    result = copy.deepcopy(document)
    *keys_above, last = keys
    holder = result
    for key in keys_above:
        holder = holder[key]
    if value is REMOVED:
        del holder[last]
    else:
        holder[last] = value
    return result


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_schema_in_docs_is_the_one_that_the_code_makes(name):
    """DOCUMENTS has, for each schema of docs/, such as that of a run record, the function that makes it.

    `make schema` writes the files anew.
    """
    schema_in_docs = json.loads((DOCS / name).read_text("utf-8"))
    make_schema = DOCUMENTS[name]

    assert schema_in_docs == make_schema()


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_schema_in_docs_is_valid_json_schema(name):
    """`name` is that of a file of docs/, such as run-record.schema.json."""
    schema_in_docs = json.loads((DOCS / name).read_text("utf-8"))

    jsonschema.Draft202012Validator.check_schema(schema_in_docs)


FROZEN_CARDS = {
    path.name: json.loads(zipfile.ZipFile(path).read("card.json"))
    for path in sorted(FROZEN.glob("*_4_*.model"))
}


@pytest.mark.parametrize("name", FROZEN_CARDS)
def test_cards_of_model_files_of_format_4_obey_the_schema_and_are_read(name):
    """A model's file has a card, the JSON that describes it. `name` is one of the files that are kept.

    They were written when protocol 4 of model files came, and later versions must still read them.
    """
    card = FROZEN_CARDS[name]

    validator("model-card.schema.json").validate(card)
    parse_card(card, name)


@pytest.mark.parametrize(
    ("keys", "value", "message"),
    [
        (("seed",), REMOVED, "'seed'"),
        (("target", "classes", 0), "a", r"'target.classes'"),
        (("target", "hook"), "rm", r"'target.hook'"),
        (("pool",), "median", r"'pool'.*'median'"),
        (("calibration",), {"slope": 1.0}, "'calibration'"),
    ],
)
def test_a_card_with_one_wrong_field_is_refused_by_code_and_schema(keys, value, message):
    """A card is the JSON that describes a saved model. The field that `keys` lead to gets the wrong `value`.

    The message names the field. The schema lets unknown fields of a target pass, which the code refuses:
    "hook" is one.
    """
    right_card = FROZEN_CARDS["protocol_4_mlp.model"]
    wrong_card = with_field(right_card, keys, value)

    with pytest.raises(ModelError, match=message):
        parse_card(wrong_card, "m.model")
    if keys != ("target", "hook"):
        assert not validator("model-card.schema.json").is_valid(wrong_card)


@pytest.fixture(scope="module")
def run_document(tmp_path_factory):
    """What the file run.json of an evaluation of `linear` holds; it is right by the schema and the code."""
    data = load_dataset(*corpus(tmp_path_factory.mktemp("run"), "films", FILMS[:4]))
    document = json.loads(to_json(evaluate(data, ["linear"], "calm_violent")))
    validator("run-record.schema.json").validate(document)
    assert check_document(document, "run.json") == document["record"]
    return document


@pytest.mark.parametrize(
    ("keys", "value", "message"),
    [
        (("record", "seeds"), REMOVED, r"'record.seeds'"),
        (("record", "tests", 0, "title"), REMOVED, r"'record.tests\[0\].title'"),
        (("record", "folds", 1, "seed"), "a", r"'record.folds\[1\].seed'.*'a'"),
        (("record", "codebook"), "obygaze12", r"'record.codebook'"),
    ],
)
def test_a_record_with_one_wrong_field_is_refused_by_code_and_schema(run_document, keys, value, message):
    """The field of a right run.json that `keys` lead to gets the wrong `value`; the message names it."""
    wrong_document = with_field(run_document, keys, value)

    with pytest.raises(RunError, match=message):
        check_document(wrong_document, "run.json")
    assert not validator("run-record.schema.json").is_valid(wrong_document)


def test_a_record_may_have_further_fields(run_document):
    """`evaluate(data, models, origin={"annotators": ["a", "b"]})` adds one, and schema and code take it."""
    document = with_field(run_document, ("record", "annotators"), ["a", "b"])

    validator("run-record.schema.json").validate(document)
    record = check_document(document, "run.json")

    assert record["annotators"] == ["a", "b"]
