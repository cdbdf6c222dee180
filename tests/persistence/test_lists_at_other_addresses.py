"""Lists of models at addresses that nothing here can write to."""

from pathlib import Path

import pytest

import obygaze_models
from obygaze_models.errors import ModelError
from obygaze_models.persistence.sharing import pull_model, push_model

MODEL = Path(obygaze_models.__file__).parent / "zoo/words-s-1.0.0.model"


@pytest.mark.parametrize("address", ["gs://bucket/zoo", "sftp://host/zoo"])
def test_a_model_is_not_pushed_into_a_folder_called_like_an_address(tmp_path, monkeypatch, address):
    """Such an address was taken for a path, so that the model seemed to be shared."""
    monkeypatch.chdir(tmp_path)

    with pytest.raises(ModelError, match=f"^{address}: expected a folder on this machine; .*s3://"):
        push_model(MODEL, address, name="words")

    assert not list(tmp_path.iterdir())


def test_a_model_is_not_pulled_into_a_folder_called_like_an_address(tmp_path, monkeypatch):
    """Its file would lie on this machine, in a folder `gs:`, where nobody looks for it."""
    monkeypatch.chdir(tmp_path)
    push_model(MODEL, tmp_path / "zoo", name="words")

    with pytest.raises(ModelError, match=r"^gs://bucket/kept: expected a folder on this machine; "):
        pull_model("words", "gs://bucket/kept", zoo=tmp_path / "zoo")

    assert [path.name for path in tmp_path.iterdir()] == ["zoo"]
