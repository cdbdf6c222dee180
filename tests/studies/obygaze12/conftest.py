"""The released annotations, imported once."""

import pytest

from obygaze_features.manifest import import_obygaze12
from obygaze_studies.mobygaze import import_mobygaze


@pytest.fixture(scope="session")
def obygaze12(shared_data, tmp_path_factory):
    """ObyGaze12's clips, with the folds of the released split files."""
    return import_obygaze12(shared_data / "obygaze12", tmp_path_factory.mktemp("manifest")).manifest


@pytest.fixture(scope="session")
def segments(shared_data, tmp_path_factory):
    """MObyGaze's free segments of two annotators."""
    return import_mobygaze(shared_data / "mobygaze", tmp_path_factory.mktemp("manifest")).manifest
