"""Names in a list of models that some systems take for one."""

from pathlib import Path

import pytest

import obygaze_models
from obygaze_models.errors import ModelError
from obygaze_models.persistence.sharing import push_model, verify_models

SHIPPED = Path(obygaze_models.__file__).parent / "zoo"


@pytest.mark.parametrize("version", ["1.0.0", "1.1.0"])
def test_a_name_that_differs_in_capitals_alone_is_not_added_to_a_list(tmp_path, version):
    """On Windows and macOS HN-1.0.0.model is the file hn-1.0.0.model, which is never to be replaced.

    Another version has another file, but both names would then be asked for in either spelling.
    """
    push_model(SHIPPED / "words-s-1.0.0.model", tmp_path / "zoo", name="hn", version="1.0.0")

    with pytest.raises(ModelError, match="hn is there, from which HN differs in capitals alone"):
        push_model(SHIPPED / "words-body-1.0.0.model", tmp_path / "zoo", name="HN", version=version)

    (listed,) = verify_models(tmp_path / "zoo")
    assert listed[0].label == "hn@1.0.0"
    assert listed[1] == ""
