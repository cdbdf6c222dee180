"""A package outside of ours adds a kind of file to import and a format to export, by one line each."""

import subprocess
import sys

import pytest

from obygaze_features.errors import ObygazeError
from obygaze_features.manifest.spans.sources import SpanSource
from obygaze_features.plugins import offered

from . import lab_package

IMPORTER = """
from obygaze_features.manifest.spans.sources import SpanSource
it = SpanSource(lambda given: (), lambda given: given.text.startswith("LAB"))
"""
EXPORTER = """
from obygaze_film.exchange.registry import Format
it = Format(lambda film: "LAB", ".lab", ("segments",))
"""
ASK = """
from obygaze_features.manifest.spans.sources import SOURCES
from obygaze_film.commands.film_output import ADDED
from obygaze_film.exchange import FORMATS
print(list(SOURCES)[-1], list(FORMATS)[-1], *ADDED)
"""


def test_a_package_adds_an_importer_and_an_exporter(tmp_path):
    (tmp_path / "lab_importer.py").write_text(IMPORTER)
    (tmp_path / "lab_exporter.py").write_text(EXPORTER)
    importers = "[obygaze.importers]\nlab = lab_importer:it\n"
    exporters = "[obygaze.exporters]\nlab-out = lab_exporter:it\n"
    lab_package.describe(tmp_path, "lab_formats", importers + exporters)
    path = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
    done = subprocess.run([sys.executable, "-c", path + ASK], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["lab", "lab-out", "lab-out"]


def test_an_entry_point_of_another_class_is_refused_by_its_name(tmp_path, monkeypatch):
    entry = "[obygaze.importers]\nodd = lab_odd:it\n"
    lab_package.install(tmp_path, monkeypatch, "lab_odd", "it = 1\n", entry)
    with pytest.raises(ObygazeError, match="odd"):
        offered("obygaze.importers", SpanSource)
