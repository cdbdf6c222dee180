"""A model file keeps a model to the bit, says what it is, and can't do more than be refused."""

import io
import json
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from obygaze_models.errors import ModelError
from obygaze_models.persistence.card import PROTOCOL, features_digest
from obygaze_models.persistence.model_file import construct, pack, read_model, to_state, write_model
from obygaze_models.prediction.saved_model import load_model

from .model_files import FROZEN as FROZEN_MLP
from .model_files import GOOD, PROVENANCE, about_of, card_of, edited, fitted, packed, read

FROZEN = Path(__file__).parent / "frozen"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("variant", ["strict", "paper"])
def test_a_model_comes_back_to_the_bit(tmp_path, variant, dtype):
    probe, rows = fitted(variant, dtype)
    probe.threshold_ = 0.125
    write_model(tmp_path / "new" / "a.model", card_of(probe), to_state(probe).arrays, about_of(probe))
    model = read_model(tmp_path / "new" / "a.model")
    read_again = construct(model)
    assert read_again.decision_function(rows).tobytes() == probe.decision_function(rows).tobytes()
    assert np.array_equal(read_again.predict(rows), probe.predict(rows))
    assert read_again.get_params() == probe.get_params()
    assert (
        len(read_again.curve_.train_loss) == len(read_again.curve_.validation_loss) == 0
    )  # which are not kept
    assert model.card == card_of(probe)
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["a.model"]


def test_the_same_model_is_the_same_bytes(tmp_path):
    assert packed(fitted()[0]) == GOOD
    # A file that was read can be written again as it was.
    model = read(tmp_path, GOOD)
    assert pack(model.card, model.arrays, model.other_arrays) == GOOD


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_a_link_that_a_person_names_is_followed(tmp_path):
    model = read(tmp_path, GOOD)
    (tmp_path / "link.model").symlink_to("some.model")
    assert read_model(tmp_path / "link.model").card == model.card


def test_clips_of_one_distance_are_in_rising_order_too(tmp_path):
    model = read(tmp_path, GOOD)
    equal_distances = np.ones_like(model.other_arrays["reach_distances"])
    other_arrays = dict(model.other_arrays) | {"reach_distances": equal_distances}
    assert read(tmp_path, pack(model.card, model.arrays, other_arrays)).card == model.card


def test_no_time_or_machine_is_in_the_file():
    with zipfile.ZipFile(io.BytesIO(GOOD)) as archive:
        for member in archive.infolist():
            assert member.date_time == (1980, 1, 1, 0, 0, 0)
            assert (member.create_system, member.extra, member.comment) == (3, b"", b"")


def test_the_digest_of_features_is_of_what_makes_numbers_differ():
    other_words = PROVENANCE | {"contact": "me", "source": {"name": "other"}}
    other_weights = PROVENANCE | {"weights_sha256": "a" * 64}
    assert features_digest(other_words) == features_digest(PROVENANCE)
    assert features_digest(other_weights) != features_digest(PROVENANCE)


def test_frozen_files_of_every_kind_are_read_as_they_were():
    """Frozen files are never made anew: a change that needs that needs a new number and new files."""
    names = sorted(path.name for path in FROZEN.glob("*.model"))
    assert {name.split("_")[1] for name in names} == {str(PROTOCOL)}
    for name in names:
        model = load_model(FROZEN / name)
        expected = json.loads((FROZEN / name).with_suffix(".json").read_text("utf-8"))
        rows = np.array(expected["X"], dtype=np.float32)
        np.testing.assert_allclose(model.logits(rows), expected["scores"], rtol=1e-6)
        np.testing.assert_allclose(
            model.out_of_distribution_share(rows), expected.get("unlike", np.nan), rtol=1e-6
        )
        if "values" in expected:
            np.testing.assert_allclose(model.concept_values(rows), expected["values"], rtol=1e-6)
        assert (model.card.backbone, model.card.threshold) == (expected["backbone"], expected["threshold"])


def test_a_card_says_which_levels_its_calibration_has_not_seen():
    card = structs.replace(
        FROZEN_MLP,
        population=None,
        codebook={"name": "obygaze12", "digest": ""},
        target=FROZEN_MLP.target | {"classes": [["EN"], ["S"]]},
    )
    assert (card.population, card.levels_left_out) == (None, ("HN",))
    assert structs.replace(card, codebook={"name": "of a lab"}).levels_left_out is None
    assert structs.replace(card, target=card.target | {"name": "scale:calm"}).levels_left_out == ()
    population = {"levels_left_out": ["S"]}
    assert structs.replace(card, population=population).levels_left_out == ("S",)


def test_a_card_tells_whether_films_left_out_show_skill():
    skilled = read_model(FROZEN / "protocol_4_mlp.model").card
    assert skilled.evidence["auc_low"] > 0.5
    assert not skilled.no_skill
    doubtful = skilled.evidence | {"auc_low": 0.4, "p_skilled": 0.6}
    assert structs.replace(skilled, evidence=doubtful).no_skill
    assert not structs.replace(skilled, evidence=doubtful | {"p_skilled": 0.95}).no_skill
    assert structs.replace(skilled, evidence=doubtful | {"auc_low": None, "p_skilled": None}).no_skill
    assert not structs.replace(skilled, evidence=None).no_skill


@pytest.mark.parametrize("number", range(1, PROTOCOL))
def test_a_file_of_an_older_format_is_refused_with_the_line_that_makes_it_anew(tmp_path, number):
    task = FROZEN_MLP.target["name"]
    with pytest.raises(ModelError, match=f"obygaze evaluate MANIFEST STORE --task {task} --save mlp --out"):
        read(tmp_path, edited(protocol_number=number))
