"""Judgements as one object, and the doors that refuse what was judged under two definitions."""

from dataclasses import replace
from pathlib import Path

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import (
    Clip,
    Level,
    Manifest,
    agreement,
    builtin_codebook,
    judgements_of,
    level_pairs,
    merge_annotators,
    project,
    write_manifest,
)
from obygaze_models.protocol import labels_of
from tests.command import obygaze

OBYGAZE12 = builtin_codebook("obygaze12")
DEFINITION = "a" * 64
"""A digest of the words that judges read: judgements under two of them answer two questions."""


def judged_clip(judge, start_s, level="S", *, name="", definition=DEFINITION, seen_score="0", **more):
    """Make a clip of 46 s of film tt1 with a judgement: blind, unless `seen_score` is "1"."""
    extras = {"seen_score": seen_score, "definition": definition} | more
    name = name or f"{judge}-{start_s}-{seen_score}"
    return Clip(name, "tt1", "", float(start_s), float(start_s + 46), level, (), judge, extras)


def manifest_of(*clips):
    return Manifest(tuple(clips), Path(), OBYGAZE12)


@pytest.mark.parametrize(
    ("path", "other_path"),
    [("films/a.mp4", "./films/a.mp4"), ("films/am\u00e9lie.mp4", "films/ame\u0301lie.mp4")],
    ids=["a point", "an accent on its own"],
)
def test_two_spellings_of_a_path_are_one_video_of_which_two_annotators_judged_one_window(path, other_path):
    """AB and CD judged the same window as S. Their tables spell the path of its video in two ways.

    If these were two videos, the annotators would share no window, and their judgements would be projected
    as free segments.
    """
    of_ab = replace(judged_clip("AB", start_s=0), video=path)
    of_cd = replace(judged_clip("CD", start_s=0), video=other_path)

    (pair,) = level_pairs(manifest_of(of_ab, of_cd))

    assert pair.counts == {("S", "S"): 1}
    one_clip = manifest_of(of_ab, replace(of_cd, clip_id=of_ab.clip_id))
    assert len(one_clip.clips_once) == 1


def test_a_judgement_has_the_facts_of_its_row():
    """`content_s` is written with a decimal comma, as some spreadsheets do. A seen score of 0 means blind."""
    further_columns = {
        "seen_score": "0",
        "definition": "a" * 64,
        "place": "3",
        "content_s": "40,5",
        "judged_at": "2026-01-01",
    }
    row = Clip("x", "tt1", "", start_s=0.0, end_s=46.0, level="S", annotator="AB", extras=further_columns)

    (judgement,) = judgements_of(manifest_of(row)).every

    assert judgement.judge == "AB"
    assert judgement.level == "S"
    assert judgement.place == 3
    assert judgement.content_s == 40.5
    assert judgement.is_blind is True
    assert judgement.definition == "a" * 64
    assert judgement.judged_at == "2026-01-01"


def test_a_row_without_a_level_is_no_judgement():
    """AB judged one window as S. In a second row the level is empty."""
    row = judged_clip("AB", start_s=0)
    row_without_level = replace(row, clip_id="x", level=None)

    judgements = judgements_of(manifest_of(row, row_without_level)).every

    assert [judgement.level for judgement in judgements] == ["S"]


def test_facts_that_older_tables_do_not_have_are_left_open():
    """AB judged a window as S, in a table without columns for place, length, blindness and definition."""
    older_row = Clip("y", "tt1", "", start_s=0.0, end_s=46.0, level="S", annotator="AB")

    (judgement,) = judgements_of(manifest_of(older_row)).every

    assert judgement.place == 0
    assert judgement.content_s is None
    assert judgement.is_blind is None
    assert judgement.definition == ""


def test_common_windows_are_those_that_all_judges_judged():
    """AB judged the windows at 0, 46 and 92 s, CD those at 46, 92 and 138 s, EF that at 92 s.

    So AB and CD share two windows, and all three share one. Nobody shares none.
    """
    by_ab = [judged_clip("AB", start_s=0), judged_clip("AB", start_s=46), judged_clip("AB", start_s=92)]
    by_cd = [judged_clip("CD", start_s=46), judged_clip("CD", start_s=92), judged_clip("CD", start_s=138)]
    by_ef = [judged_clip("EF", start_s=92)]

    judgements = judgements_of(manifest_of(*by_ab, *by_cd, *by_ef))

    assert [window.start_s for window in judgements.common_windows(["AB", "CD"])] == [46, 92]
    assert [window.start_s for window in judgements.common_windows(judgements.judges)] == [92]
    assert judgements.common_windows([]) == []


def test_a_blind_judgement_overrides_one_in_sight_of_a_score():
    """AB judged the window at 0 s in sight of a score (EN) and blindly (S), that at 46 s in sight (HN).

    A judge who sees a score is influenced by it, so the blind judgement counts where there is one.
    """
    in_sight = judged_clip("AB", start_s=0, level="EN", seen_score="1")
    blind = judged_clip("AB", start_s=0, level="S", seen_score="0")
    in_sight_alone = judged_clip("AB", start_s=46, level="HN", seen_score="1")

    judgements_of_ab = judgements_of(manifest_of(in_sight, blind, in_sight_alone)).by_judge()["AB"]

    level_of_window = {window.start_s: judgement.level for window, judgement in judgements_of_ab.items()}
    assert level_of_window == {0: "S", 46: "HN"}


def test_a_window_judged_twice_blindly_is_refused():
    """AB says S and EN of one window, and nothing tells which of them counts."""
    first = judged_clip("AB", start_s=0, level="S")
    second = judged_clip("AB", start_s=0, level="EN", name="again")
    judgements = judgements_of(manifest_of(first, second))
    with pytest.raises(ManifestError, match="twice"):
        judgements.by_judge()


def two_windows_by_two_judges(definition_of_one):
    """Return four judgements. CD's of the first window is under this definition, the others under one."""
    return [
        judged_clip("AB", start_s=0, definition=DEFINITION),
        judged_clip("CD", start_s=0, level="EN", definition=definition_of_one),
        judged_clip("AB", start_s=46, definition=DEFINITION),
        judged_clip("CD", start_s=46, definition=DEFINITION),
    ]


def project_on_the_same_windows(manifest):
    """Project judgements onto the windows from 0 and from 46 s on, which were judged."""
    windows = manifest_of(
        judged_clip("", start_s=0, level=None), judged_clip("", start_s=46, level=None, name="w")
    )
    return project(manifest, windows)


WHAT_MERGES_LABELS = pytest.mark.parametrize(
    "merge", [agreement, level_pairs, labels_of, merge_annotators, project_on_the_same_windows]
)


@WHAT_MERGES_LABELS
def test_labels_judged_under_two_definitions_are_not_merged(merge):
    """AB and CD judged two windows: three judgements are under one definition (aaa...), one under bbb...

    They do not answer the same question. The error counts them by judge.
    """
    manifest = manifest_of(*two_windows_by_two_judges(definition_of_one="b" * 64))
    with pytest.raises(
        ManifestError, match=r"3 judgements under aaaaaaaaaaaa \(AB 2, CD 1\).* 1 judgement under bbb"
    ):
        merge(manifest)


@WHAT_MERGES_LABELS
def test_judgements_under_a_known_and_an_unrecorded_definition_are_not_refused_to_be_merged(merge):
    """AB and CD judged two windows. AB's judgements have the definition of what they read.

    CD judged with an earlier version of the program, which did not write it: an empty definition. It may have
    been that of AB, so whatever merges labels must take both and raise no error, as it does for two
    definitions.
    """
    merge(
        manifest_of(
            judged_clip("AB", start_s=0, definition=DEFINITION),
            judged_clip("CD", start_s=0, level="EN", definition=""),
            judged_clip("AB", start_s=46, definition=DEFINITION),
            judged_clip("CD", start_s=46, definition=""),
        )
    )


@pytest.mark.parametrize(
    "command", [["agreement"], ["agreement", "--alpha", "1"], ["disagreements"], ["alttest"]]
)
def test_no_command_compares_people_who_judged_under_two_definitions(tmp_path, capsys, command):
    """AB and CD judged two windows, CD one of them under another definition than AB.

    The definition is the digest of the words that judges read. The error counts who judged under which.
    """
    name, *options = command
    path = tmp_path / "judged.csv"
    judged = manifest_of(*two_windows_by_two_judges(definition_of_one="b" * 64))
    write_manifest(judged, path)

    exit_code = obygaze("manifest", name, str(path), *options)

    assert exit_code == 1
    assert "CD 1" in capsys.readouterr().err


def with_other_level_s(**changes):
    """Return ObyGaze12 with a level S that is changed."""
    levels = []
    for level in OBYGAZE12.levels:
        if level.name == "S":
            fields = {name: getattr(level, name) for name in level.__struct_fields__}
            levels.append(Level(**fields | changes))
        else:
            levels.append(level)
    return replace(OBYGAZE12, levels=tuple(levels))


@pytest.mark.parametrize("changes", [{"means": "any shot in which a woman is seen"}, {"title": "Certain"}])
def test_the_definition_depends_on_what_judges_read(changes):
    """Judges read titles and meanings. Here the level S gets another one."""
    with_changed_level = with_other_level_s(**changes)
    assert with_changed_level.definition() != OBYGAZE12.definition()


def test_the_definition_does_not_depend_on_what_judges_are_not_shown():
    """Such are synonyms, the codebook's name and version, tasks and policies."""
    with_synonym = with_other_level_s(synonyms=("yes",))
    otherwise_named = replace(OBYGAZE12, name="mine", version="2", tasks=(), policies=())

    assert with_synonym.definition() == OBYGAZE12.definition()
    assert otherwise_named.definition() == OBYGAZE12.definition()
