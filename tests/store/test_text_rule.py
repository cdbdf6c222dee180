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


@pytest.fixture(params=HOSTILE.values(), ids=HOSTILE)
def hostile_store(request, tmp_path):
    """A store with a text that terminals obey, or that has two lines; its digests were made to fit."""
    store = make_sealed_store(tmp_path)
    change_attributes(store, request.param)
    return store


def test_a_text_that_a_terminal_obeys_is_found_by_full_verification_alone(hostile_store):
    """One text of a store has signs by which a terminal clears its screen or sets its title.

    The store's digests are those of this text, so that nothing is damaged. Only the full verification reads
    the texts; it says of the text that it "holds the ..." sign.
    """
    assert verify(hostile_store).ok
    assert any("holds the" in problem.what for problem in verify(hostile_store, "full").problems)


@pytest.mark.parametrize("command", [["inspect"], ["inspect", "--json"], ["verify", "--full"]])
def test_commands_escape_control_characters_in_texts_of_a_store(hostile_store, capsys, command):
    """One text of a stranger's store has characters that a terminal obeys, such as those that clear it.

    Or its citation has a second line, "fingerprint 00", which would look like a line of the command. No
    command prints a control character (`unsuitable` finds none but line breaks), nor that text as a line of
    its own.
    """
    obygaze("store", *command, hostile_store)

    out, err = capsys.readouterr()
    control_character_found = unsuitable(out + err, line_breaks=True)  # line breaks are allowed
    assert control_character_found is None
    assert "\nfingerprint 00" not in out


def test_programs_get_a_text_that_a_terminal_obeys_unchanged(hostile_store, capsys):
    """JSON has escapes of its own for control characters, which programs undo."""
    obygaze("store", "inspect", "--json", hostile_store)

    shown = json.loads(capsys.readouterr().out)
    assert shown["citation"] == open_store(hostile_store).attributes["citation"]


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
