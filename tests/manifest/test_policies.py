"""Three ways to read labels, each giving its published counts."""

from dataclasses import replace
from pathlib import Path

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import Clip, LabelPolicy, Manifest, apply_policy
from obygaze_studies.obygaze12.statistics import count_table, printed_count_table, statistics
from tests.files import rows_of

CLIPS = Manifest(
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


@pytest.mark.parametrize(
    ("policy", "levels"),
    [
        ("raw", {"none": "EN", "heard": "HN", "seen": "S", "unmarked": "S", "unlabelled": None}),
        ("paper", {"none": "EN", "heard": "EN", "seen": "S", "unmarked": "EN", "unlabelled": None}),
        ("released", {"none": "EN", "seen": "S", "unmarked": "S", "unlabelled": None}),
    ],
)
def test_policies_differ_in_clips_without_a_visual_concept(policy, levels):
    """Of the five clips of `CLIPS`, "heard" has Speech alone, "unmarked" no concept, and "seen" has Body.

    `raw` keeps all levels, `paper` makes clips without a visual concept EN, and `released` leaves out those
    that have other concepts alone. A clip without a level gets none.
    """
    with_policy = apply_policy(CLIPS, LabelPolicy(policy))
    assert {clip.clip_id: clip.level for clip in with_policy} == levels


@pytest.mark.parametrize("policy", LabelPolicy)
def test_a_policy_changes_no_concepts_and_nothing_where_it_is_applied_twice(policy):
    """`CLIPS` are five clips with levels and concepts. A policy changes levels, or leaves clips out."""
    once = apply_policy(CLIPS, policy)
    twice = apply_policy(once, policy)

    for clip in once:
        assert clip.concepts == CLIPS.by_id[clip.clip_id].concepts
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
    """The numbers of clips of each level are published by the paper, and by the released files."""
    with_policy = apply_policy(obygaze12, LabelPolicy(policy))
    assert list(statistics(with_policy).clips.items()) == list(counts.items())


def test_released_keeps_the_clips_of_the_released_split_files(obygaze12, shared_data):
    """The file compared has the levels EN, HN and S, so that not-sure clips (NS) do not count here."""
    path = shared_data / "obygaze12" / "balanced_level" / "02_EN_HN_S.csv"
    ids_in_file = {row["id"] for row in rows_of(path, ";")}

    released = apply_policy(obygaze12, LabelPolicy.RELEASED)

    assert {clip.clip_id for clip in released if clip.level != "NS"} == ids_in_file


def test_the_papers_numbers_are_reproduced_under_its_policy(obygaze12):
    """Of the 12 numbers that the paper prints about its clips, 11 are ours.

    The paper prints shares as whole per cents. It prints 23 % where ours is 23.6 %: it cut and did not round.
    """
    printed_numbers = printed_count_table(obygaze12)  # {name: as it is printed}
    counted = statistics(apply_policy(obygaze12, LabelPolicy.PAPER))
    our_numbers = {number.name: number for number in count_table(counted)}

    differing = []
    for name, printed in printed_numbers.items():
        number = our_numbers[name]
        ours = f"{number.value:.0%}" if "%" in printed else number.formatted
        if printed != ours:
            differing.append((name, printed, number.formatted))

    assert len(printed_numbers) == 12
    ((name, printed, ours),) = differing
    assert name == "S of EN and S"
    assert printed.replace(" ", "") == "23%"
    assert ours == "23.6%"


def test_a_policy_that_a_codebook_does_not_list_is_refused():
    """Labels of another codebook, whose concepts may all be visual or none, are read as annotated alone."""
    levels_of_ours = replace(CLIPS.codebook, policies=())
    clips = replace(CLIPS, codebook=levels_of_ours)

    assert apply_policy(clips, LabelPolicy.RAW) == clips
    for policy in (LabelPolicy.PAPER, LabelPolicy.RELEASED):
        with pytest.raises(ManifestError, match=f"{policy}.* has raw alone"):
            apply_policy(clips, policy)
