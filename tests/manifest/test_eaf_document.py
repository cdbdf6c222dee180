"""Documents of ELAN for people: valid, blank of any opinion, and read back with who and when."""

from functools import cache
from pathlib import Path

import pytest

from obygaze_features.manifest import (
    Clip,
    Manifest,
    blank_document,
    builtin_codebook,
    conflicts_document,
    import_spans,
)
from obygaze_features.manifest.eaf_document import conflicts
from obygaze_features.manifest.spans.tier_names import DECIDED, DECIDED_LEVEL
from tests.manifest.spans.files import aligned

CODEBOOK = builtin_codebook("mobygaze")


@cache
def schema():
    import xmlschema

    return xmlschema.XMLSchema(Path(__file__).parents[1] / "film" / "exchange" / "eaf-3.0.xsd")


def make_clip(name, start_s, end_s, level, *concepts):
    return Clip(f"f-{name}-{start_s}", "f", "", start_s, end_s, level, concepts, name)


@pytest.fixture
def two_annotators(tmp_path):
    """Two annotators of a film: alike up to 10 s, then one sees S where the other sees EN, then HN."""
    clips = (
        make_clip("ann", 0.0, 10.0, "S", "Body", "Speech"),
        make_clip("ann", 10.0, 30.0, "EN"),
        make_clip("ben", 0.0, 10.0, "S", "Body"),
        make_clip("ben", 10.0, 20.0, "S", "Look"),
        make_clip("ben", 20.0, 25.0, "HN"),
        make_clip("ben", 25.0, 30.0, "EN"),
    )
    return Manifest(clips, tmp_path, CODEBOOK)


@pytest.mark.parametrize("annotators", [(), ("AB",), ("AB", "C & D")])
def test_a_blank_document_is_valid_and_holds_no_annotation(tmp_path, annotators):
    """The document is valid by ELAN's own schema, and offers all levels and concepts of the codebook.

    Importing it gives no clips.
    """
    text = blank_document(CODEBOOK, "tt1", annotators, media="film.mkv")
    schema().validate(text)
    assert "film.mkv" in text
    for word in (*CODEBOOK.level_names, "Type of shot", "Soundtrack"):
        assert f">{word}<" in text
    (tmp_path / "blank.eaf").write_text(text, encoding="utf-8")

    assert not import_spans([tmp_path / "blank.eaf"], tmp_path).manifest.clips


def test_conflicts_are_the_spans_in_which_levels_differ(two_annotators):
    """The annotators cut the film at different times. From 25 s on both say EN, so nothing is in conflict."""
    assert conflicts(two_annotators.clips) == [
        (10.0, 20.0, "ann: EN; ben: S"),
        (20.0, 25.0, "ann: EN; ben: HN"),
    ]


def test_annotations_survive_an_export_to_elan_and_back(two_annotators, tmp_path):
    """The document shows no score of a model, so that annotators are recorded as blind to it."""
    text = conflicts_document(two_annotators, "f")
    schema().validate(text)
    (tmp_path / "f.eaf").write_text(text, encoding="utf-8")
    read = import_spans([tmp_path / "f.eaf"], tmp_path).manifest
    assert read.codebook.name == "mobygaze"
    found = [(c.annotator, c.start_s, c.end_s, c.level, c.concepts) for c in read]

    assert found == [(c.annotator, c.start_s, c.end_s, c.level, c.concepts) for c in two_annotators]
    assert {c.extras["seen_score"] for c in read} == {"0"}


def test_decisions_come_back_with_who_and_when(two_annotators, tmp_path):
    """Both annotators decide together for S on the empty tier of decisions, and save the document."""
    text = conflicts_document(two_annotators, "f")
    decision = aligned("d1", "ts5", "ts8", "S")
    tier = f'TIER_ID="{DECIDED_LEVEL}" LINGUISTIC_TYPE_REF="level"'
    assert f"{tier} />" in text
    text = text.replace(f"{tier} />", f'{tier} ANNOTATOR="both">{decision}</TIER>')
    date_of_export, date_of_saving = "1970-01-01T00:00:00+00:00", "2026-11-23T10:00:00+01:00"
    assert date_of_export in text
    text = text.replace(date_of_export, date_of_saving)
    (tmp_path / "f.eaf").write_text(text, encoding="utf-8")
    (clip,) = import_spans([tmp_path / "f.eaf"], tmp_path, tiers=dict(DECIDED)).manifest

    assert (clip.annotator, clip.level) == ("both", "S")
    assert clip.extras["decided_on"] == date_of_saving
