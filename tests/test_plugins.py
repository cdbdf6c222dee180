"""A package outside of ours adds a kind of file to import, a format to export and an audit by a line each."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from obygaze_features.errors import ObygazeError
from obygaze_features.manifest.spans.sources import SpanSource
from obygaze_features.plugins import offered
from obygaze_film.commands import film_output
from obygaze_film.exchange import FORMATS

from . import lab_package

ROOT = Path(__file__).parents[1]
IMPORTER = """
from obygaze_features.manifest.spans.sources import SpanSource
it = SpanSource(lambda given: (), lambda given: given.text.startswith("LAB"))
"""
EXPORTER = """
from obygaze_film.exchange.registry import Format
it = Format(lambda film: "LAB", ".lab", ("segments",))
"""
AUDIT = """
from pathlib import Path
from typing import Annotated
from obygaze_features.signatures import command, option
from obygaze_studies.commands.audit_commands import Out, ReportOutput

@command()
def longest(*, captions: Annotated[Path, option("CSV of captions.")], out: Out):
    '''Find the longest caption.'''
    from obygaze_studies.audit_common.findings import Finding, Wording, report
    from obygaze_studies.audit_common.inputs import read_rows

    shown = ["image_id", "caption"]
    wording = Wording(
        name="lab-longest", title="Longest caption", table="Longest", columns=shown,
        sentence="the longest is of {image_id}",
    )
    rows = sorted(read_rows(captions, shown), key=lambda row: -len(row["caption"]))
    return ReportOutput(out, beside=True).finish(report(wording, Finding(rows=rows[:1])))
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


def test_a_package_adds_an_audit_with_its_command(tmp_path):
    (tmp_path / "lab_audit.py").write_text(AUDIT)
    lab_package.describe(tmp_path, "lab_audits", "[obygaze.audits]\nlab-longest = lab_audit:longest\n")
    (tmp_path / "captions.csv").write_text("image_id,caption\na,a cat\nb,a sleeping cat\n")
    words = ["-m", "obygaze", "audit", "lab-longest", "--captions", "captions.csv", "--out", "found.csv"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)])}
    subprocess.run([sys.executable, *words], cwd=tmp_path, env=environment, check=True, capture_output=True)
    assert (tmp_path / "found.csv").read_text() == "image_id,caption\nb,a sleeping cat\n"
    assert json.loads((tmp_path / "found.json").read_text())["record"]["audit"] == "lab-longest"


def test_the_command_offers_every_format_of_films():
    assert set(film_output.FORMATS) == set(FORMATS) - set(film_output.ADDED)


def test_an_entry_point_of_another_class_is_refused_by_its_name(tmp_path, monkeypatch):
    entry = "[obygaze.importers]\nodd = lab_odd:it\n"
    lab_package.install(tmp_path, monkeypatch, "lab_odd", "it = 1\n", entry)
    with pytest.raises(ObygazeError, match="odd"):
        offered("obygaze.importers", SpanSource)
