"""No store is sealed with texts that a terminal obeys; one made otherwise is found and shown unharmed."""

import json

import pytest

from obygaze_features.errors import StoreError
from obygaze_features.store import PlannedClip, Stage, open_store, seal, staging_path, verify
from obygaze_features.store.records import ClipResult
from obygaze_features.text import unsuitable
from tests.command import obygaze

from .hostile_stores import change_attributes, resealed
from .toy_stores import CORPUS, group, make_sealed_store, plan, result

SETS_THE_TITLE = "\x1b]0;mine\x07"
CLEARS_THE_SCREEN = "\x1b[2J"
CLEARS_BY_ONE_BYTE = "\x9b2J"
RIGHT_TO_LEFT = "\u202e"
OBEYED_BY_TERMINALS = [SETS_THE_TITLE, CLEARS_THE_SCREEN, CLEARS_BY_ONE_BYTE, RIGHT_TO_LEFT]


def make_stage(tmp_path, name):
    stage = Stage.open(staging_path(tmp_path / "s"), plan(2), [group()], {**CORPUS, "name": name})
    with stage.writer() as writer:
        writer.commit([result(clip.clip_id, [group()]) for clip in stage.clips])
    return stage.path


TAKES_A_TEXT = {
    **{field: lambda bad, _, field=field: group(**{field: bad}) for field in ("contact", "layer", "own")},
    "architecture": lambda bad, _: group(architecture={"width": [bad]}),
    "provenance": lambda bad, _: group(architecture={bad: 1}),
    "clip id": lambda bad, _: PlannedClip(bad, "m"),
    "movie": lambda bad, _: PlannedClip("a", bad),
    "text": lambda bad, _: PlannedClip("a", "", text=bad),
    "reason": lambda bad, _: ClipResult("a", "failed", bad),
    "corpus.name": lambda bad, path: make_stage(path, bad),
    "citation": lambda bad, path: seal(make_stage(path, "toy"), path / "s", licence="MIT", citation=bad),
}
"""What takes a text -> a call that hands it one."""


@pytest.mark.parametrize("place", TAKES_A_TEXT)
def test_texts_that_a_terminal_obeys_are_refused_everywhere(tmp_path, place):
    """Control characters can change a terminal's title, clear its screen or reverse its text when shown.

    `place` is what takes a text, such as a clip's id or the citation; the refusal names it.
    """
    hand_over = TAKES_A_TEXT[place]
    for number, control_characters in enumerate(OBEYED_BY_TERMINALS):
        folder = tmp_path / str(number)

        with pytest.raises(StoreError, match=place):
            hand_over(f"a{control_characters}", folder)

        assert not (folder / "s-1.0.0").exists()


HOSTILE = {
    "citation": lambda about, _: about.update(citation=f"me {CLEARS_THE_SCREEN}"),
    "corpus": lambda about, _: about["corpus"].update(name=f"toy {SETS_THE_TITLE}"),
    "an attribute of its own": lambda about, _: about.update(note=["fine", {"a": CLEARS_BY_ONE_BYTE}]),
    "provenance": lambda _, provenance: provenance.update(contact=f"a{RIGHT_TO_LEFT}"),
    "a key": lambda _, provenance: provenance["architecture"].update({f"a{SETS_THE_TITLE}": 1}),
    "a line more": lambda about, _: about.update(citation="me\nfingerprint 00"),
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_texts_that_a_terminal_obeys_are_found_by_full_verification_and_shown_escaped(
    tmp_path, capsys, change
):
    """The store was changed and its digests made to fit, so that only reading the texts finds it.

    JSON escapes control characters, so that programs get the text unchanged. A text of two lines must not
    look like a line of the command: "fingerprint 00" is in its second.
    """
    store = make_sealed_store(tmp_path)
    change_attributes(store, change)
    assert verify(store).ok  # the digests fit
    assert any("holds the" in problem.what for problem in verify(store, "full").problems)

    for command in (["inspect"], ["inspect", "--json"], ["verify", "--full"]):
        obygaze("store", *command, store)
        out, err = capsys.readouterr()
        assert (
            unsuitable(out + err, line_breaks=True) is None
        )  # but for ends of lines, no sign that terminals obey
        assert "\nfingerprint 00" not in out
        if "--json" in command:
            assert json.loads(out)["citation"] == open_store(store).attributes["citation"]


@pytest.mark.parametrize("column", ["movie", "reason"])
def test_full_verification_finds_hostile_texts_in_the_table_of_clips(tmp_path, column):
    """U+202E shows the text behind it from right to left, so that a name can look like another one."""
    store = make_sealed_store(tmp_path)
    table = store / "data/clips.csv"
    header, first_clip, *others = table.read_text(encoding="utf-8").split("\n")
    cells = first_clip.split(",")
    cells[header.split(",").index(column)] = f"x{RIGHT_TO_LEFT}"
    table.write_text("\n".join([header, ",".join(cells), *others]), encoding="utf-8")

    resealed(store)
    assert verify(store).ok  # the digests fit
    problems = [problem.what for problem in verify(store, "full").problems]
    assert any(f"{column} holds the bidirectional character U+202E" in problem for problem in problems)
