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

BOOK = builtin_codebook("obygaze12")
WORDS = "a" * 64
OTHER_WORDS = "b" * 64


def make_clip(annotator, start, level="S", *, name="", definition=WORDS, seen="0", **more):
    extras = {"seen_score": seen, "definition": definition} | more
    name = name or f"{annotator}-{start}-{seen}"
    return Clip(name, "tt1", "", float(start), float(start + 46), level, (), annotator, extras)


def manifest(*clips):
    return Manifest(tuple(clips), Path(), BOOK)


def test_a_judgement_has_the_facts_of_its_row():
    """The row without a level is no judgement.

    `content_s` is written with a decimal comma, as some spreadsheets do. Older tables have no columns for
    place, length, blindness and definition: these facts are left open.
    """
    row = make_clip("AB", 0, place="3", content_s="40,5", judged_at="2026-01-01")
    row_without_level = replace(row, clip_id="x", level=None)
    (judgement,) = judgements_of(manifest(row, row_without_level)).every
    assert (judgement.judge, judgement.level, judgement.place) == ("AB", "S", 3)
    assert judgement.content_s == 40.5
    assert judgement.is_blind is True
    assert judgement.definition == WORDS
    assert judgement.judged_at == "2026-01-01"

    older_row = Clip("y", "tt1", "", 0.0, 46.0, "S", (), "AB")
    (judgement,) = judgements_of(manifest(older_row)).every
    assert judgement.place == 0
    assert judgement.content_s is None
    assert judgement.is_blind is None
    assert judgement.definition == ""


def test_common_windows_are_those_that_all_judges_judged():
    """AB judged the windows at 0, 46 and 92 s, CD those at 46, 92 and 138 s, EF that at 92 s."""
    rows = [make_clip("AB", start) for start in (0, 46, 92)] + [
        make_clip("CD", start) for start in (46, 92, 138)
    ]
    judged = judgements_of(manifest(*rows, make_clip("EF", 92)))

    assert [window.start_s for window in judged.common_windows(["AB", "CD"])] == [46, 92]
    assert [window.start_s for window in judged.common_windows(judged.judges)] == [92]
    assert judged.common_windows([]) == []


def test_a_blind_judgement_overrides_one_in_sight_of_a_score():
    """A judge who sees a model's score is influenced by it.

    AB judged the window at 0 s both ways (EN in sight, S blindly), that at 46 s in sight alone.
    """
    in_sight, blind = make_clip("AB", 0, "EN", seen="1"), make_clip("AB", 0, "S")
    judged = judgements_of(manifest(in_sight, blind, make_clip("AB", 46, seen="1")))
    levels = {window.start_s: one.level for window, one in judged.by_judge()["AB"].items()}
    assert levels == {0: "S", 46: "S"}


def test_a_window_judged_twice_blindly_is_refused():
    """AB says S and EN of one window, and nothing tells which of them counts."""
    twice = judgements_of(manifest(make_clip("AB", 0), make_clip("AB", 0, "EN", name="again")))
    with pytest.raises(ManifestError, match="twice"):
        twice.by_judge()


UNDER_TWO_DEFINITIONS = [
    make_clip("AB", 0),
    make_clip("CD", 0, "EN", definition=OTHER_WORDS),
    make_clip("AB", 46),
    make_clip("CD", 46),
]
UNKNOWN = [
    replace(one, extras=one.extras | {"definition": ""}) if one.annotator == "CD" else one
    for one in UNDER_TWO_DEFINITIONS
]


@pytest.mark.parametrize(
    "merge",
    [
        agreement,
        level_pairs,
        labels_of,
        merge_annotators,
        lambda judged: project(judged, manifest(make_clip("", 0, None), make_clip("", 46, None, name="w"))),
    ],
)
def test_labels_judged_under_two_definitions_are_not_merged(
    merge,
):
    """Three judgements are under one wording of the level, and one is under another.

    They do not answer the same question; the error counts them by judge. Judgements without a recorded
    wording are accepted.
    """
    with pytest.raises(
        ManifestError, match=r"3 judgements under aaaaaaaaaaaa \(AB 2, CD 1\).* 1 judgement under bbb"
    ):
        merge(manifest(*UNDER_TWO_DEFINITIONS))
    merge(manifest(*UNKNOWN))  # judged with an earlier version, which did not write its definition


@pytest.mark.parametrize(
    "command", [["agreement"], ["agreement", "--alpha", "1"], ["disagreements"], ["alttest"]]
)
def test_no_command_compares_people_who_judged_under_two_definitions(tmp_path, capsys, command):
    """CD judged one window under another wording than AB."""
    name, *more = command
    write_manifest(manifest(*UNDER_TWO_DEFINITIONS), tmp_path / "judged.csv")
    assert obygaze("manifest", name, str(tmp_path / "judged.csv"), *more) == 1
    assert "CD 1" in capsys.readouterr().err


def test_the_definition_is_what_judges_read():
    """Judges read titles and meanings.

    Synonyms, the codebook's name and version, tasks and policies are not shown to them.
    """
    sure = next(level for level in BOOK.levels if level.name == "S")

    def with_level(changed):
        return replace(BOOK, levels=tuple(changed if level is sure else level for level in BOOK.levels))

    assert (
        with_level(replace_level(sure, means="any shot in which a woman is seen")).definition()
        != BOOK.definition()
    )
    assert with_level(replace_level(sure, title="Certain")).definition() != BOOK.definition()
    assert with_level(replace_level(sure, synonyms=("yes",))).definition() == BOOK.definition()
    assert replace(BOOK, name="mine", version="2", tasks=(), policies=()).definition() == BOOK.definition()


def replace_level(level, **changes):
    kept = {name: getattr(level, name) for name in level.__struct_fields__}
    return Level(**kept | changes)
