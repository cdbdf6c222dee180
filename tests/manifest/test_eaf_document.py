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
from tests.manifest.spans.files import alignable_annotation

MOBYGAZE = builtin_codebook("mobygaze")


@cache
def schema_of_elan():
    """Return ELAN's own schema of its documents, by which a document can be validated."""
    import xmlschema

    return xmlschema.XMLSchema(Path(__file__).parents[1] / "film" / "exchange" / "eaf-3.0.xsd")


def clip_of_film_f(annotator, start_s, end_s, level, *concepts):
    """Make a clip of film f to which an annotator gave a level and concepts."""
    return Clip(f"f-{annotator}-{start_s}", "f", "", start_s, end_s, level, concepts, annotator)


@pytest.fixture
def two_annotators(tmp_path):
    """A manifest of film f by two annotators.

    Both say S up to 10 s. Then Ann says EN to the end, at 30 s, and Ben S up to 20 s, HN up to 25 s, and EN.
    """
    clips = (
        clip_of_film_f("ann", 0.0, 10.0, "S", "Body", "Speech"),
        clip_of_film_f("ann", 10.0, 30.0, "EN"),
        clip_of_film_f("ben", 0.0, 10.0, "S", "Body"),
        clip_of_film_f("ben", 10.0, 20.0, "S", "Look"),
        clip_of_film_f("ben", 20.0, 25.0, "HN"),
        clip_of_film_f("ben", 25.0, 30.0, "EN"),
    )
    return Manifest(clips, tmp_path, MOBYGAZE)


@pytest.mark.parametrize("annotators", [(), ("AB", "C & D")], ids=["nobody", "two annotators"])
def test_a_blank_document_is_valid_by_elans_own_schema(annotators):
    """A blank document of the film tt1 is for people to annotate: for nobody by name, or for two annotators.

    Signs that mean something in XML, as in "C & D", must be written otherwise.
    """
    document = blank_document(MOBYGAZE, "tt1", annotators, media="film.mkv")

    schema_of_elan().validate(document)
    assert "film.mkv" in document


def test_a_blank_document_offers_all_levels_and_concepts_of_the_codebook():
    """A blank document of ELAN is for people to annotate the film tt1, by the codebook of MObyGaze.

    Its levels and concepts stand in vocabularies, from which people choose in ELAN, whoever annotates.
    """
    document = blank_document(MOBYGAZE, movie="tt1", annotators=())

    for word in (*MOBYGAZE.level_names, *MOBYGAZE.concept_names):
        assert f">{word}<" in document


@pytest.mark.parametrize("annotators", [(), ("AB", "C & D")], ids=["nobody", "two annotators"])
def test_a_blank_document_has_no_annotation_to_import(tmp_path, annotators):
    """A blank document of ELAN is for people to annotate the film tt1. Nobody has done so yet."""
    path = tmp_path / "blank.eaf"
    path.write_text(blank_document(MOBYGAZE, "tt1", annotators), encoding="utf-8")

    assert import_spans([path], tmp_path).manifest.clips == ()


def test_conflicts_are_the_spans_in_which_levels_differ(two_annotators):
    """Up to 10 s Ann and Ben say S. Then Ann says EN, and Ben S up to 20 s, HN up to 25 s, and EN too."""
    assert conflicts(two_annotators.clips, MOBYGAZE) == [
        (10.0, 20.0, "ann: EN; ben: S"),
        (20.0, 25.0, "ann: EN; ben: HN"),
    ]


@pytest.mark.parametrize("is_higher_first", [True, False])
def test_of_overlapping_spans_of_one_annotator_the_higher_level_is_compared(is_higher_first):
    """Ann says S from 0 to 10 s, and HN from 5 to 10 s besides. Ben says S: they differ nowhere."""
    higher = clip_of_film_f("ann", start_s=0.0, end_s=10.0, level="S")
    lower = clip_of_film_f("ann", start_s=5.0, end_s=10.0, level="HN")
    of_ann = (higher, lower) if is_higher_first else (lower, higher)
    of_ben = clip_of_film_f("ben", start_s=0.0, end_s=10.0, level="S")

    assert conflicts((*of_ann, of_ben), MOBYGAZE) == []


CLIPS_OF_ANN_AND_BEN = (
    clip_of_film_f("ann", start_s=0.0, end_s=10.0, level="S"),
    clip_of_film_f("ann", start_s=20.0, end_s=30.0, level="S"),
    clip_of_film_f("ben", start_s=20.0, end_s=30.0, level="S"),
)
"""Ann marks S up to 10 s, where Ben marks nothing; both mark S from 20 to 30 s."""


def test_time_that_an_annotator_left_unmarked_is_a_conflict_if_they_mark_only_what_they_find():
    """Ann marks S up to 10 s and from 20 to 30 s, and Ben only from 20 to 30 s.

    Ben gives no label of the lowest level, EN, so what he leaves unmarked means that nothing is there. Up to
    10 s the two differ, and a person has to settle it.
    """
    spans_of_conflict = conflicts(CLIPS_OF_ANN_AND_BEN, MOBYGAZE)

    assert spans_of_conflict == [(0.0, 10.0, "ann: S; ben: EN")]


def test_time_that_an_annotator_left_unmarked_is_no_conflict_if_they_mark_the_lowest_level_too():
    """Ann marks S up to 10 s and from 20 to 30 s, and Ben S from 20 to 30 s and EN from 40 to 50 s.

    EN is the lowest level, so Ben marks also that nothing is there, and says nothing of the time up to 10 s,
    which he left unmarked.
    """
    en_by_ben = clip_of_film_f("ben", start_s=40.0, end_s=50.0, level="EN")

    spans_of_conflict = conflicts((*CLIPS_OF_ANN_AND_BEN, en_by_ben), MOBYGAZE)

    conflicts_up_to_20_s = [span for span in spans_of_conflict if span[0] < 20]
    assert conflicts_up_to_20_s == []


def test_a_row_that_names_no_annotator_is_no_part_of_the_document_of_conflicts(two_annotators):
    """Ann and Ben labelled film f. In this document they see where they differ, to settle it.

    A merged row, which names nobody, says HN up to 10 s, where both say S. It is no third person who differs
    from them: the document is the same as without the row.
    """
    of_nobody = clip_of_film_f("", start_s=0.0, end_s=10.0, level="HN")
    with_merged_row = two_annotators.with_clips((*two_annotators.clips, of_nobody))

    assert conflicts_document(with_merged_row, "f") == conflicts_document(two_annotators, "f")


def labels_of(clips):
    return [(clip.annotator, clip.start_s, clip.end_s, clip.level, clip.concepts) for clip in clips]


def test_annotations_survive_an_export_to_elan_and_back(two_annotators, tmp_path):
    """The labels of Ann and Ben become a document of ELAN, by which they can settle what they differ on.

    It is valid by ELAN's schema, and its labels are read back. Whether Ann and Ben saw a model's score when
    they labelled is not known, as the document shows none: so nothing is recorded of it (`seen_score`).
    """
    document = conflicts_document(two_annotators, "f")
    schema_of_elan().validate(document)
    path = tmp_path / "f.eaf"
    path.write_text(document, encoding="utf-8")

    imported = import_spans([path], tmp_path).manifest

    assert imported.codebook.name == "mobygaze"
    assert labels_of(imported) == labels_of(two_annotators)
    for clip in imported:
        assert "seen_score" not in clip.extras


def with_level_decided_by_both(document, level, date_of_saving):
    """Write a level on the empty tier for common decisions, as people do in ELAN, which sets the date."""
    empty_tier = f'TIER_ID="{DECIDED_LEVEL}" LINGUISTIC_TYPE_REF="level" />'
    decision = alignable_annotation("d1", "ts5", "ts8", level)
    tier_with_decision = empty_tier.replace(" />", f' ANNOTATOR="both">{decision}</TIER>')
    date_of_export = "1970-01-01T00:00:00+00:00"
    assert empty_tier in document
    assert date_of_export in document
    return document.replace(empty_tier, tier_with_decision).replace(date_of_export, date_of_saving)


def test_decisions_come_back_with_who_and_when(two_annotators, tmp_path):
    """Ann and Ben labelled film f. A document of ELAN shows where they differ, with a tier for decisions.

    They decide on S for a span, sign as "both", and save the document on 23 November: imported, it is a clip
    by "both" with this date.
    """
    document = conflicts_document(two_annotators, "f")
    path = tmp_path / "f.eaf"
    path.write_text(
        with_level_decided_by_both(document, level="S", date_of_saving="2026-11-23T10:00:00+01:00"),
        encoding="utf-8",
    )

    (clip,) = import_spans([path], tmp_path, tiers=dict(DECIDED)).manifest

    assert clip.annotator == "both"
    assert clip.level == "S"
    assert clip.extras["decided_on"] == "2026-11-23T10:00:00+01:00"
