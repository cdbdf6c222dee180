"""What people wrote in ELAN becomes clips; what a model wrote never does."""

import re

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import import_spans
from obygaze_film.exchange import export
from tests.film.page.invented import invented_film

SLOT = '<TIME_SLOT TIME_SLOT_ID="h{0}" TIME_VALUE="{1}"/>'
ALIGNED = (
    '<ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="x{0}" TIME_SLOT_REF1="h{1}" TIME_SLOT_REF2="h{2}">'
    "<ANNOTATION_VALUE>{3}</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION></ANNOTATION>"
)
REFERRING = (
    '<ANNOTATION><REF_ANNOTATION ANNOTATION_ID="y{0}" ANNOTATION_REF="x{0}">'
    "<ANNOTATION_VALUE>{1}</ANNOTATION_VALUE></REF_ANNOTATION></ANNOTATION>"
)


@pytest.fixture(scope="module")
def untouched():
    return export(invented_film(n_rows=40, duration_s=600.0), "eaf")


def written_on(text, level='TIER_ID="human: level"', levels=("S", "HN", ""), concepts=("Body; Look", "")):
    """Write levels at 1.5 to 2.75 s, 11.5 to 12.75 s, ... and concepts below them, as ELAN does."""
    slots = "".join(
        SLOT.format(2 * n, 10_000 * n + 1500) + SLOT.format(2 * n + 1, 10_000 * n + 2750)
        for n in range(len(levels))
    )
    above = "".join(ALIGNED.format(n, 2 * n, 2 * n + 1, value) for n, value in enumerate(levels))
    below = "".join(REFERRING.format(n, value) for n, value in enumerate(concepts))
    text = text.replace("</TIME_ORDER>", f"{slots}</TIME_ORDER>")
    text = text.replace(
        '<TIER TIER_ID="human: level" LINGUISTIC_TYPE_REF="level" />',
        f'<TIER {level} ANNOTATOR="AB" LINGUISTIC_TYPE_REF="level">{above}</TIER>',
    )
    old = '<TIER TIER_ID="human: concepts" LINGUISTIC_TYPE_REF="concepts" PARENT_REF="human: level" />'
    assert old in text
    return text.replace(old, f'{old[:-2]} ANNOTATOR="AB">{below}</TIER>')


def test_an_untouched_export_gives_no_clips(tmp_path, untouched):
    (tmp_path / "film.eaf").write_text(untouched, encoding="utf-8")
    imported = import_spans([tmp_path / "film.eaf"], tmp_path)
    assert len(imported.manifest) == 0
    assert any("left out 8 tiers" in notice for notice in imported.notices)


@pytest.mark.parametrize("tag", ["ANNOTATION", "ALIGNABLE_ANNOTATION"])
def test_what_is_no_annotation_of_elan_is_counted(tmp_path, untouched, tag):
    whole = ALIGNED.format(0, 0, 1, "S")
    other = re.sub(rf"(</?){tag}\b", r"\1REMARK", whole)
    text = written_on(untouched, concepts=())
    assert whole in text
    (tmp_path / "film.eaf").write_text(text.replace(whole, other), encoding="utf-8")
    (account,) = import_spans([tmp_path / "film.eaf"], tmp_path).accounts
    assert any("REMARK" in where for where, _ in account.left_out)


def test_human_tiers_become_clips_to_the_millisecond(tmp_path, untouched):
    (tmp_path / "film.eaf").write_text(written_on(untouched), encoding="utf-8")
    imported = import_spans([tmp_path / "film.eaf"], tmp_path)
    first, two = imported.manifest.clips
    assert (first.start_s, first.end_s, first.level, first.concepts) == (1.5, 2.75, "S", ("Look", "Body"))
    assert (two.start_s, two.end_s, two.level, two.concepts) == (11.5, 12.75, "HN", ())
    assert {clip.movie for clip in imported.manifest} == {"tt0000042"}
    assert {clip.annotator for clip in imported.manifest} == {"AB"}
    # The file has the model's tiers: the score was in sight.
    assert {clip.extras["seen_score"] for clip in imported.manifest} == {"1"}
    (account,) = imported.accounts
    assert (account.seen, account.used) == (5, 3)
    assert [why for _, why in account.left_out] == ["without a level", "without a concept"]


def test_a_document_of_people_alone_was_blind_and_may_name_annotators_in_tiers(tmp_path):
    slots = SLOT.format(1, 0) + SLOT.format(2, 500)
    tiers = "".join(
        f'<TIER TIER_ID="human: {what}@Léa D.">{ALIGNED.format(n, 1, 2, value)}</TIER>'
        for n, (what, value) in enumerate((("level", "sure"), ("concepts", "body")))
    )
    head = '<HEADER TIME_UNITS="milliseconds"/>'
    text = f"<ANNOTATION_DOCUMENT>{head}<TIME_ORDER>{slots}</TIME_ORDER>{tiers}</ANNOTATION_DOCUMENT>"
    path = tmp_path / "own.eaf"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ManifestError, match=r"own.eaf"):
        import_spans([path], tmp_path)
    (clip,) = import_spans([path], tmp_path, movie="tt1").manifest.clips
    assert (clip.clip_id, clip.annotator, clip.level, clip.concepts) == (
        "tt1-Lea-D-0001",
        "Léa D.",
        "S",
        ("Body",),
    )
    assert clip.extras["seen_score"] == "0"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: written_on(text, levels=("Sur",), concepts=()), r"film.eaf"),
        (lambda text: written_on(text, concepts=("Bodi",)), "'Bodi'"),
        (lambda text: written_on(text).replace('ANNOTATOR="AB"', ""), "nobody's"),
        (lambda text: written_on(text).replace('TIME_VALUE="2750"', ""), None),
        (lambda _: "<svg/>", "film.eaf"),
        (lambda text: text.replace("<ANN", "<!DOCTYPE a [<!ENTITY b 'c'>]><ANN", 1), None),
        (lambda text: text.replace('TIME_UNITS="milliseconds"', 'TIME_UNITS="PAL-frames"'), None),
    ],
)
def test_what_is_wrong_is_named(tmp_path, untouched, change, message):
    path = tmp_path / "film.eaf"
    path.write_text(change(untouched), encoding="utf-8")
    with pytest.raises(ManifestError, match=message):
        import_spans([path], tmp_path)
