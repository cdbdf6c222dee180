"""What installed packages add to our lists is checked at loading (what they add: test_extending.py)."""

import pytest

from obygaze_features.errors import ObygazeError
from obygaze_features.manifest.spans.sources import SpanSource
from obygaze_features.plugins import IMPORTERS, offered

from . import lab_package


def test_an_entry_point_of_another_class_is_refused_by_its_name(tmp_path, monkeypatch):
    entry = f"[{IMPORTERS}]\nodd = lab_odd:it\n"
    lab_package.install(tmp_path, monkeypatch, "lab_odd", "it = 1\n", entry)
    with pytest.raises(ObygazeError, match="odd"):
        offered(IMPORTERS, SpanSource)
