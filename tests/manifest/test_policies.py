"""Three ways to read labels, each giving its published counts."""

from pathlib import Path

import pytest

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


def level_by_clip(manifest):
    return {clip.clip_id: clip.level for clip in manifest}


AS_LABELLED = {"none": "EN", "heard": "HN", "seen": "S", "unmarked": "S", "unlabelled": None}


@pytest.mark.parametrize(
    ("policy", "levels"),
    [
        (LabelPolicy.PAPER, AS_LABELLED | {"heard": "EN", "unmarked": "EN"}),
        (LabelPolicy.RELEASED, {"none": "EN", "seen": "S", "unmarked": "S", "unlabelled": None}),
        (LabelPolicy.RAW, AS_LABELLED),
    ],
)
def test_clips_without_a_visual_concept_are_read_by_the_policy(policy, levels):
    """The clip "heard" has Speech alone, and "unmarked" no concept.

    In the paper both are easy negatives (EN); the released files leave out clips that have concepts but no
    visual one. Applying a policy twice changes nothing.
    """
    once = apply_policy(CLIPS, policy)
    assert level_by_clip(once) == levels
    assert all(clip.concepts == CLIPS.by_id[clip.clip_id].concepts for clip in once)
    assert apply_policy(once, policy) == once


@pytest.mark.parametrize(
    ("policy", "counts"),
    [("paper", [1003, 309, 292, 310]), ("released", [436, 304, 292, 308]), ("raw", [453, 711, 397, 353])],
)
def test_obygaze12_has_its_counts_under_each_policy(obygaze12, policy, counts):
    """Numbers of clips of the levels EN, HN, NS and S.

    Those of the paper and of the released files are published.
    """
    assert list(statistics(apply_policy(obygaze12, LabelPolicy(policy))).clips.values()) == counts


def test_released_keeps_the_clips_of_the_released_split_files(obygaze12, shared_data):
    """The split files have the levels EN, HN and S, so not-sure clips (NS) are compared elsewhere."""
    path = shared_data / "obygaze12" / "balanced_level" / "02_EN_HN_S.csv"
    released = {row["id"] for row in rows_of(path, ";")}
    kept = {clip.clip_id for clip in apply_policy(obygaze12, LabelPolicy.RELEASED) if clip.level != "NS"}
    assert kept == released


def test_the_papers_numbers_are_reproduced_under_its_policy(obygaze12):
    """The paper prints some shares as whole per cents, other numbers as the table of counts does."""
    printed = printed_count_table(obygaze12)
    counted = statistics(apply_policy(obygaze12, LabelPolicy.PAPER))
    numbers = {number.name: number for number in count_table(counted)}
    assert len(printed) == 12
    differing = []
    for name, text in printed.items():
        number = numbers[name]
        ours = f"{number.value:.0%}" if "%" in text else number.formatted
        if text != ours:
            differing.append((name, number.formatted))

    assert differing == [("S of EN and S", "23.6%")]  # printed as 23 %: cut, not rounded
