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

from .model_files import (
    FROZEN_CARD,
    MODEL_FILE,
    PROVENANCE,
    card_of_probe,
    fitted_probe_and_rows,
    model_file_of,
    model_file_with_card,
    other_arrays_of,
    read_and_construct_bytes,
)

FROZEN_FILES = Path(__file__).parent / "frozen"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("variant", ["strict", "paper"])
def test_a_model_comes_back_to_the_bit(tmp_path, variant, dtype):
    """A small perceptron is written and read: its scores and labels of 40 clips are the same."""
    probe, rows = fitted_probe_and_rows(variant, dtype)
    probe.threshold_ = 0.125
    path = tmp_path / "new" / "a.model"

    write_model(path, card_of_probe(probe), to_state(probe).arrays, other_arrays_of(probe))
    model = read_model(path)
    probe_again = construct(model)

    assert probe_again.decision_function(rows).tobytes() == probe.decision_function(rows).tobytes()
    assert np.array_equal(probe_again.predict(rows), probe.predict(rows))
    assert probe_again.get_params() == probe.get_params()
    assert model.card == card_of_probe(probe)


def write_model_of_probe(path):
    """Train a small perceptron, and write its card and arrays to a model file."""
    probe, _ = fitted_probe_and_rows()
    write_model(path, card_of_probe(probe), to_state(probe).arrays, other_arrays_of(probe))


def test_the_parts_of_a_model_that_was_read_are_packed_to_the_same_bytes(tmp_path):
    """A model file is a card, the model's own arrays, and others such as those of its calibration."""
    path = tmp_path / "a.model"
    write_model_of_probe(path)

    model = read_model(path)

    assert pack(model.card, model.arrays, model.other_arrays) == path.read_bytes()


def test_writing_a_model_makes_its_folder_and_leaves_nothing_else_there(tmp_path):
    """The file is written under another name first and then renamed: that one must be gone."""
    path = tmp_path / "new" / "a.model"

    write_model_of_probe(path)

    assert list(path.parent.iterdir()) == [path]


def test_a_model_file_has_no_training_curve(tmp_path):
    """The curve of losses is of interest while a model is trained. One that was read has an empty curve."""
    model = read_and_construct_bytes(tmp_path, MODEL_FILE)

    probe = construct(model)

    assert len(probe.curve_.train_loss) == 0
    assert len(probe.curve_.validation_loss) == 0


def test_a_model_that_is_trained_again_has_the_same_file():
    """`MODEL_FILE` has the bytes of a file of the same perceptron, trained on the same clips."""
    probe_trained_again, _ = fitted_probe_and_rows()

    assert model_file_of(probe_trained_again) == MODEL_FILE


@pytest.mark.skipif(sys.platform == "win32", reason="making links needs a permission on Windows")
def test_a_path_to_a_model_may_be_a_link(tmp_path):
    """What is read by link.model is the model in some.model, to which it leads."""
    file = tmp_path / "some.model"
    file.write_bytes(MODEL_FILE)
    link = tmp_path / "link.model"
    link.symlink_to("some.model")

    assert read_model(link).card == read_model(file).card


def test_equal_reach_distances_pass_the_check_that_they_rise(tmp_path):
    """A model file keeps how far training clips are from each other, as distances that may not fall."""
    model = read_and_construct_bytes(tmp_path, MODEL_FILE)
    equal_distances = np.ones_like(model.other_arrays["reach_distances"])
    other_arrays = dict(model.other_arrays) | {"reach_distances": equal_distances}

    read_again = read_and_construct_bytes(tmp_path, pack(model.card, model.arrays, other_arrays))

    assert read_again.card == model.card


def test_no_time_or_machine_is_in_the_file():
    """A model file is a zip archive: its date is the earliest that zip knows, its system always 3, Unix."""
    with zipfile.ZipFile(io.BytesIO(MODEL_FILE)) as archive:
        for member in archive.infolist():
            assert member.date_time == (1980, 1, 1, 0, 0, 0)
            assert member.create_system == 3
            assert member.extra == b""
            assert member.comment == b""


def test_the_digest_of_features_depends_on_the_weights_of_their_backbone():
    """Provenance says how features were extracted. A model can be applied to those of one digest alone."""
    other_weights = PROVENANCE | {"weights_sha256": "a" * 64}

    assert features_digest(other_weights) != features_digest(PROVENANCE)


def test_the_digest_of_features_does_not_depend_on_the_contact_or_the_corpus():
    """Features of another corpus are of the same kind, and a model can be applied to them."""
    other_contact_and_corpus = PROVENANCE | {"contact": "me", "source": {"name": "other"}}

    assert features_digest(other_contact_and_corpus) == features_digest(PROVENANCE)


def test_frozen_files_of_every_kind_give_the_scores_that_they_gave_when_they_were_made():
    """Beside each file protocol_4_KIND.model lies a JSON with rows of features and their scores.

    The files are never replaced: another format gets a new protocol number and new files.
    """
    paths = sorted(FROZEN_FILES.glob("*.model"))
    assert paths

    for path in paths:
        assert path.name.startswith(f"protocol_{PROTOCOL}_")
        expected = json.loads(path.with_suffix(".json").read_text("utf-8"))
        rows = np.array(expected["X"], dtype=np.float32)

        model = load_model(path)

        assert model.card.backbone == expected["backbone"]
        assert model.card.threshold == expected["threshold"]
        np.testing.assert_allclose(model.logits(rows), expected["scores"], rtol=1e-6)
        # NaN for a model that does not know how far its training clips are from each other.
        expected_share = expected.get("unlike", np.nan)
        share_of_training_clips_nearer = model.out_of_distribution_share(rows)
        np.testing.assert_allclose(share_of_training_clips_nearer, expected_share, rtol=1e-6)
        if "values" in expected:
            np.testing.assert_allclose(model.concept_values(rows), expected["values"], rtol=1e-6)


CARD_OF_EN_AND_S = structs.replace(
    FROZEN_CARD,
    population=None,
    codebook={"name": "obygaze12", "digest": ""},
    target=FROZEN_CARD.target | {"classes": [["EN"], ["S"]]},
)
"""The card of a model that tells EN from S, two of the three levels of ObyGaze12 that are labels."""


def test_a_card_says_which_levels_its_model_has_not_seen():
    """The model tells EN from S. The levels of ObyGaze12 that are labels are EN, HN and S."""
    assert CARD_OF_EN_AND_S.levels_left_out == ("HN",)


def test_of_a_codebook_that_is_not_known_a_card_cannot_say_which_levels_were_not_seen():
    """The model tells EN from S. Which other levels a lab's codebook has is not in the card."""
    card = structs.replace(CARD_OF_EN_AND_S, codebook={"name": "of a lab"})
    assert card.levels_left_out is None


def test_a_model_of_a_scale_leaves_no_level_out():
    """A model that was trained on the levels EN and S alone leaves others out, such as HN, and says so.

    A scale, such as how calm a clip is, is an ordered label beside the levels. A model of it has no levels to
    leave out.
    """
    card = structs.replace(CARD_OF_EN_AND_S, target=CARD_OF_EN_AND_S.target | {"name": "scale:calm"})
    assert card.levels_left_out == ()


def test_levels_that_a_card_states_as_left_out_count():
    """The model tells EN from S of ObyGaze12, so that HN would be left out if nothing were stated."""
    card = structs.replace(CARD_OF_EN_AND_S, population={"levels_left_out": ["S"]})
    assert card.levels_left_out == ("S",)


@pytest.mark.parametrize(
    ("auc_low", "p_skilled", "no_skill"),
    [(0.6, 0.6, False), (0.4, 0.6, True), (0.4, 0.95, False), (None, None, True)],
    ids=["AUC above chance", "neither", "probably skilled", "both undefined"],
)
def test_films_left_out_show_skill_by_an_auc_above_chance_or_a_high_p_skilled(auc_low, p_skilled, no_skill):
    """The evidence in a card is of films that were left out in training.

    `auc_low` is the lower end of the interval of the AUC, where .5 is chance, and `p_skilled` the probability
    that the model is skilled, of which .95 is high.
    """
    evidence = FROZEN_CARD.evidence | {"auc_low": auc_low, "p_skilled": p_skilled}

    card = structs.replace(FROZEN_CARD, evidence=evidence)

    assert card.no_skill is no_skill


def test_without_evidence_it_is_not_said_that_a_model_has_no_skill():
    """Evidence is of films that were left out in training; a card may have none."""
    without_evidence = structs.replace(FROZEN_CARD, evidence=None)

    assert not without_evidence.no_skill


NUMBER_OF_FORMAT = PROTOCOL
"""Number of the format in which model files are written now."""


@pytest.mark.parametrize("older_number", range(1, NUMBER_OF_FORMAT))
def test_a_file_of_an_older_format_is_refused_with_the_command_that_trains_the_model_again(
    tmp_path, older_number
):
    """A model file has a card, which says the number of the file's format, and what was trained and how.

    Files of older formats are not converted. The refusal has the command that trains the same kind of model,
    a perceptron (`mlp`), for the same task again.
    """
    task_of_model = FROZEN_CARD.target["name"]
    command = f"obygaze evaluate MANIFEST STORE --task {task_of_model} --save mlp --out"
    file_of_older_format = model_file_with_card(protocol_number=older_number)

    with pytest.raises(ModelError, match=command):
        read_and_construct_bytes(tmp_path, file_of_older_format)
