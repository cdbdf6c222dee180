"""What installed packages add to our lists is checked at loading (what they add: test_extending.py)."""

import pytest

from obygaze_features.errors import ObygazeError
from obygaze_features.manifest.spans.sources import SpanSource
from obygaze_features.plugins import IMPORTERS, offered

from . import lab_package


def test_an_importer_of_an_installed_package_that_is_no_importer_is_refused_by_its_name(
    tmp_path, monkeypatch
):
    """A lab's package, as pip would install it, offers the number 1 as an importer, under the name "odd"."""
    entry_points = f"[{IMPORTERS}]\nodd = lab_module:one\n"
    lab_package.install(tmp_path, monkeypatch, "lab_module", "one = 1\n", entry_points)

    with pytest.raises(ObygazeError, match="odd"):
        offered(IMPORTERS, SpanSource)
