"""What a model file states of films left out are shares, from 0 to 1, whoever made the file."""

import pytest

from obygaze_models.errors import ModelError
from obygaze_models.persistence.model_file import read_model

from .model_files import FROZEN_CARD, model_file_with_card


def model_with(tmp_path, **evidence):
    path = tmp_path / "some.model"
    path.write_bytes(model_file_with_card(evidence=dict(FROZEN_CARD.evidence) | evidence))
    return path


@pytest.mark.parametrize("name", ["auc", "auc_low", "auc_high", "p_skilled"])
@pytest.mark.parametrize("value", [-0.01, 1.01, 10**30, 1e299], ids=["below", "above", "whole", "huge"])
def test_evidence_that_is_no_share_is_refused_in_one_line(tmp_path, name, value):
    """An AUC of 10 to the power of 30 ended in a traceback where it was written; one of 1.5 was printed."""
    path = model_with(tmp_path, **{name: value})

    with pytest.raises(ModelError, match="evidence") as refusal:
        read_model(path)

    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("value", [0, 1, 0.5])
def test_the_ends_of_the_range_are_shares(tmp_path, value):
    model = read_model(model_with(tmp_path, auc=value, auc_low=0.0, auc_high=1.0, p_skilled=value))

    assert model.card.evidence["auc"] == value
