"""Two tiers of levels in one file that does not say who annotated: each may be a person's."""

import pytest

from obygaze_features.errors import ManifestError
from tests.manifest.spans.written import WITH_TIERS, Mark, as_eaf, as_textgrid

BOTH_SAY_THE_SAME = [
    Mark("AB", start=1, end=5, text="S"),
    Mark("AB", start=6, end=9, text="EN"),
    Mark("CD", start=1, end=5, text="S"),
    Mark("CD", start=6, end=9, text="EN"),
]
"""The tiers AB and CD of a film, with the same levels at the same times."""

KINDS_WITHOUT_ANNOTATORS = ["textgrid", "elan-text", "boris"]


@pytest.mark.parametrize("kind", KINDS_WITHOUT_ANNOTATORS)
def test_what_two_people_agree_on_is_not_left_out_as_a_repetition(import_files, kind):
    """The tiers AB and CD of a file have the same levels at the same times. The file names no annotator.

    CD's tier may be a copy, or what a second person said. Left out as a copy, the agreement of two people
    would be gone, so the person is asked.
    """
    with pytest.raises(ManifestError, match=r"tier 'CD', as .* on tier 'AB', and neither says by whom"):
        import_files({"tt1.x": WITH_TIERS[kind](BOTH_SAY_THE_SAME)})


def test_each_persons_tier_is_imported_apart(import_files):
    """The tiers AB and CD of a file have the same levels, S and EN. The file names no annotator.

    The person says that the tier CD has levels, and that its annotator is CD.
    """
    content = as_textgrid(BOTH_SAY_THE_SAME)

    clips, _ = import_files({"tt1.x": content}, tiers={"CD": "levels"}, annotator="CD")

    assert [(clip.level, clip.annotator) for clip in clips] == [("S", "CD"), ("EN", "CD")]


def test_tiers_that_name_their_annotators_are_read_together(import_files):
    """Two tiers have the same levels. They are called gaze@AB and gaze@CD: behind @ stands the annotator."""
    marks = [mark._replace(tier=f"gaze@{mark.tier}") for mark in BOTH_SAY_THE_SAME]

    clips, _ = import_files({"tt1.x": as_textgrid(marks)})

    assert [clip.annotator for clip in clips] == ["AB", "AB", "CD", "CD"]


def test_a_tier_of_elan_that_is_a_copy_of_another_one_by_the_same_annotator_is_left_out(import_files):
    """A document of ELAN has the tier "level" and its copy "level-cp", as ELAN calls it; AB signed both.

    On each, the level S is given from 1 to 5 s and EN from 6 to 9 s. The copy says nothing new: its labels
    are left out, and that is noted.
    """
    marks = [
        Mark("level", start=1, end=5, text="S"),
        Mark("level", start=6, end=9, text="EN"),
        Mark("level-cp", start=1, end=5, text="S"),
        Mark("level-cp", start=6, end=9, text="EN"),
    ]
    document_signed_by_ab = as_eaf(marks)

    clips, notices = import_files({"tt1.eaf": document_signed_by_ab})

    assert [(clip.level, clip.annotator) for clip in clips] == [("S", "AB"), ("EN", "AB")]
    assert "the same as" in notices


def test_equal_levels_on_two_tiers_are_a_repetition_where_the_person_says_that_one_annotator_made_them(
    import_files,
):
    """The tiers AB and CD have the same levels, S and EN, at the same times.

    Their names could be those of two people who agree. But the person says that both tiers hold levels, and
    that all of the file is of EF. So each level counts once, and the other is left out as "the same as" it.
    """
    content = as_textgrid(BOTH_SAY_THE_SAME)
    clips, notices = import_files({"tt1.x": content}, tiers={"AB": "levels", "CD": "levels"}, annotator="EF")
    assert [(clip.level, clip.annotator) for clip in clips] == [("S", "EF"), ("EN", "EF")]
    assert "the same as" in notices
