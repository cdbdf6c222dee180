"""Three ways to read labels, each giving its published counts."""

from dataclasses import replace
from pathlib import Path

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import Clip, LabelPolicy, Manifest, apply_policy
from obygaze_studies.obygaze12.statistics import count_table, printed_count_table, statistics
from tests.files import rows_of

FIVE_CLIPS = Manifest(
    (
        Clip("none", "m", level="EN"),
        Clip("heard", "m", level="HN", concepts=("Speech",)),
        Clip("seen", "m", level="S", concepts=("Speech", "Body")),
        Clip("unmarked", "m", level="S"),
        Clip("unlabelled", "m", concepts=("Voice",)),
    ),
    Path(),
)
"""Five clips: "heard" has a concept that is not visual, "seen" a visual one, and "unlabelled" no level."""


def level_by_clip(manifest):
    """Return clip id -> level."""
    return {clip.clip_id: clip.level for clip in manifest}


def test_raw_keeps_every_level_as_it_was_given():
    """Five clips have these levels. "heard" and "unmarked" have no visual concept.

    Other policies change or leave out such clips.
    """
    raw = apply_policy(FIVE_CLIPS, LabelPolicy.RAW)

    assert level_by_clip(raw) == {
        "none": "EN",
        "heard": "HN",
        "seen": "S",
        "unmarked": "S",
        "unlabelled": None,
    }


def test_paper_makes_clips_without_a_visual_concept_easy_negatives():
    """Of five clips, "heard" was HN and has Speech alone, "unmarked" was S without a concept: both become EN.

    Only "seen", with Body, has a visual concept, and stays S. A clip without a level gets none.
    """
    paper = apply_policy(FIVE_CLIPS, LabelPolicy.PAPER)

    levels = level_by_clip(paper)
    assert levels == {"none": "EN", "heard": "EN", "seen": "S", "unmarked": "EN", "unlabelled": None}


def test_released_leaves_out_clips_that_have_concepts_but_no_visual_one():
    """Of five clips, "heard" has Speech alone, which is not visual, and is left out.

    Clips without any concept, such as "unmarked", or without a level, stay.
    """
    released = apply_policy(FIVE_CLIPS, LabelPolicy.RELEASED)

    assert level_by_clip(released) == {"none": "EN", "seen": "S", "unmarked": "S", "unlabelled": None}


@pytest.mark.parametrize("policy", LabelPolicy)
def test_a_policy_changes_no_concepts_and_nothing_where_it_is_applied_twice(policy):
    """A policy changes levels of the five clips, or leaves clips out. Their concepts are as before.

    Applied to what it gave, it changes nothing more.
    """
    once = apply_policy(FIVE_CLIPS, policy)
    twice = apply_policy(once, policy)

    for clip in once:
        assert clip.concepts == FIVE_CLIPS.by_id[clip.clip_id].concepts
    assert twice == once


@pytest.mark.parametrize(
    ("policy", "counts"),
    [
        ("paper", {"EN": 1003, "HN": 309, "NS": 292, "S": 310}),
        ("released", {"EN": 436, "HN": 304, "NS": 292, "S": 308}),
        ("raw", {"EN": 453, "HN": 711, "NS": 397, "S": 353}),
    ],
)
def test_obygaze12_has_its_counts_under_each_policy(obygaze12, policy, counts):
    """The paper of ObyGaze12 prints the clips of each level, and the released files give other numbers.

    Each policy is a way to read the labels: by it the numbers are those of the paper, of the files, or of
    the annotations as they are (raw).
    """
    with_policy = apply_policy(obygaze12, LabelPolicy(policy))
    assert list(statistics(with_policy).clips.items()) == list(counts.items())


def test_released_keeps_the_clips_of_the_released_split_files(obygaze12, shared_data):
    """A released file lists clips of the levels EN, HN and S; not-sure clips (NS) are not in it.

    But for these, the policy "released" keeps exactly the clips of the file.
    """
    path = shared_data / "obygaze12" / "balanced_level" / "02_EN_HN_S.csv"
    ids_in_file = {row["id"] for row in rows_of(path, ";")}

    released = apply_policy(obygaze12, LabelPolicy.RELEASED)

    assert {clip.clip_id for clip in released if clip.level != "NS"} == ids_in_file


def test_the_papers_numbers_are_reproduced_under_its_policy(obygaze12):
    """The paper of ObyGaze12 prints 12 numbers about its clips, shares as whole per cents. 11 equal ours.

    The other one is the share of S among EN and S, of which the paper prints 23 % and ours is 23.6 %: it cut
    and did not round.
    """
    printed_numbers = printed_count_table(obygaze12)
    counted = statistics(apply_policy(obygaze12, LabelPolicy.PAPER))
    our_numbers = {number.name: number for number in count_table(counted)}

    names_that_differ = []
    for name, printed in printed_numbers.items():
        ours = our_numbers[name]
        ours_as_printed = f"{ours.value:.0%}" if "%" in printed else ours.formatted
        if ours_as_printed != printed:
            names_that_differ.append(name)

    assert len(printed_numbers) == 12
    assert names_that_differ == ["S of EN and S"]
    assert printed_numbers["S of EN and S"].replace(" ", "") == "23%"
    assert our_numbers["S of EN and S"].formatted == "23.6%"


def test_a_policy_that_a_codebook_does_not_list_is_refused():
    """A policy such as `paper` changes labels by the codebook's concepts. A codebook lists which may be used.

    This one lists none. So its labels can be read as they were annotated (`raw`), and every other policy is
    refused.
    """
    levels_of_ours = replace(FIVE_CLIPS.codebook, policies=())
    clips = replace(FIVE_CLIPS, codebook=levels_of_ours)

    assert apply_policy(clips, LabelPolicy.RAW) == clips
    for policy in (LabelPolicy.PAPER, LabelPolicy.RELEASED):
        with pytest.raises(ManifestError, match=f"{policy}.* has raw alone"):
            apply_policy(clips, policy)
