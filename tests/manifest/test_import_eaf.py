"""What people wrote in ELAN becomes clips; what a model wrote never does."""

import re

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import import_spans
from obygaze_film.exchange import export
from tests.film.page.invented import invented_film
from tests.manifest.spans.files import aligned, eaf, referring, tier


@pytest.fixture(scope="module")
def untouched_export():
    """A document of ELAN with a model's tiers and empty tiers for people."""
    return export(invented_film(n_rows=40, duration_s=600.0), "eaf")


EMPTY_LEVEL_TIER = '<TIER TIER_ID="human: level" LINGUISTIC_TYPE_REF="level" />'
EMPTY_CONCEPTS_TIER = (
    '<TIER TIER_ID="human: concepts" LINGUISTIC_TYPE_REF="concepts" PARENT_REF="human: level" />'
)


def written_on(text, levels=("S", "HN", ""), concepts=("Body; Look", "")):
    """Write levels and concepts of AB on the empty tiers for people of an export, as ELAN does.

    The levels last from 1.5 to 2.75 s, 11.5 to 12.75 s, and so on; the concepts refer to the first of them.
    """
    slots = ""
    levels_of_tier = ""
    for n, level in enumerate(levels):
        start, end = f"start{n}", f"end{n}"
        slots += f'<TIME_SLOT TIME_SLOT_ID="{start}" TIME_VALUE="{10_000 * n + 1500}"/>'
        slots += f'<TIME_SLOT TIME_SLOT_ID="{end}" TIME_VALUE="{10_000 * n + 2750}"/>'
        levels_of_tier += aligned(f"level{n}", start, end, level)
    concepts_of_tier = ""
    for n, names in enumerate(concepts):
        concepts_of_tier += referring(f"concepts{n}", f"level{n}", names)
    changes = {
        "</TIME_ORDER>": f"{slots}</TIME_ORDER>",
        EMPTY_LEVEL_TIER: EMPTY_LEVEL_TIER.replace(" />", f' ANNOTATOR="AB">{levels_of_tier}</TIER>'),
        EMPTY_CONCEPTS_TIER: EMPTY_CONCEPTS_TIER.replace(" />", f' ANNOTATOR="AB">{concepts_of_tier}</TIER>'),
    }
    for before, after in changes.items():
        assert before in text
        text = text.replace(before, after)
    return text


def test_an_untouched_export_gives_no_clips(tmp_path, untouched_export):
    """The model's tiers are no annotations of people. They are left out and counted."""
    (tmp_path / "film.eaf").write_text(untouched_export, encoding="utf-8")
    imported = import_spans([tmp_path / "film.eaf"], tmp_path)
    assert len(imported.manifest) == 0
    assert any("left out 8 tiers" in notice for notice in imported.notices)


@pytest.mark.parametrize("tag", ["ANNOTATION", "ALIGNABLE_ANNOTATION"])
def test_unknown_elements_are_counted_as_left_out(tmp_path, untouched_export, tag):
    """An element that ELAN does not define, here REMARK, may hold something important, so it is listed."""
    whole = aligned("level0", "start0", "end0", "S")
    other = re.sub(rf"(</?){tag}\b", r"\1REMARK", whole)
    text = written_on(untouched_export, concepts=())
    assert whole in text
    (tmp_path / "film.eaf").write_text(text.replace(whole, other), encoding="utf-8")
    (account,) = import_spans([tmp_path / "film.eaf"], tmp_path).accounts

    assert any("REMARK" in where for where, _ in account.left_out)


def test_human_tiers_become_clips(tmp_path, untouched_export):
    """Two levels with a text become clips, and the concepts on the first belong to it.

    Of five annotations two have no text.
    """
    (tmp_path / "film.eaf").write_text(written_on(untouched_export), encoding="utf-8")
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
    assert [why for _, why in account.left_out] == ["no text", "no text"]


def test_annotators_may_be_named_in_tiers(tmp_path):
    """The tier "human: level@Léa D." is that of Léa D.

    A document without a model's tiers showed no score. It does not say which film it is of, so the user must.
    """
    tiers = (
        tier(f"human: {what}@Léa D.", aligned(what, "t1", "t2", value))
        for what, value in (("level", "sure"), ("concepts", "body"))
    )
    text = eaf({"t1": 0, "t2": 500}, "".join(tiers))
    path = tmp_path / "own.eaf"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ManifestError, match=r"own.eaf"):
        import_spans([path], tmp_path)
    (clip,) = import_spans([path], tmp_path, movie="tt1").manifest.clips

    assert (clip.clip_id, clip.annotator) == ("tt1-Lea-D-0001", "Léa D.")
    assert (clip.level, clip.concepts, clip.extras["seen_score"]) == ("S", ("Body",), "0")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: written_on(text, levels=("Sur",), concepts=()), r"film.eaf"),
        (lambda text: written_on(text, concepts=("Bodi",)), "'Bodi'"),
        (lambda text: written_on(text).replace('ANNOTATOR="AB"', ""), "nobody's"),
        (lambda text: written_on(text).replace('TIME_VALUE="2750"', ""), "it has no time"),
        (lambda _: "<a/>", "film.eaf: .*root is 'a'"),
        (lambda text: text.replace("<ANN", "<!DOCTYPE a [<!ENTITY b 'c'>]><ANN", 1), "document type"),
        (lambda text: text.replace('TIME_UNITS="milliseconds"', 'TIME_UNITS="PAL-frames"'), "PAL-frames"),
    ],
)
def test_a_document_that_cannot_be_read_is_refused_with_the_reason(
    tmp_path, untouched_export, change, message
):
    path = tmp_path / "film.eaf"
    path.write_text(change(untouched_export), encoding="utf-8")
    with pytest.raises(ManifestError, match=message):
        import_spans([path], tmp_path, "eaf")
