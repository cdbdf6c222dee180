"""No store is sealed with texts that a terminal obeys; one made otherwise is found and shown unharmed."""

import json

import pytest

from obygaze_features.errors import StoreError
from obygaze_features.store import PlannedClip, Stage, open_store, seal, staging_path, verify
from obygaze_features.store.records import ClipResult
from obygaze_features.text import unsuitable
from tests.command import obygaze

from .hostile_stores import resealed, say_of_itself
from .toy_stores import CORPUS, group, plan, result, sealed

TITLE = "\x1b]0;mine\x07"
CLEAR = "\x1b[2J"
C1 = "\x9b2J"
BIDI = "\u202e"
ALL = [TITLE, CLEAR, C1, BIDI]


def staged(tmp_path, name):
    stage = Stage.open(staging_path(tmp_path / "s"), plan(2), [group()], {**CORPUS, "name": name})
    with stage.writer() as writer:
        writer.commit([result(clip.clip_id, [group()]) for clip in stage.clips])
    return stage.path


WAYS_IN = {
    **{field: lambda bad, _, field=field: group(**{field: bad}) for field in ("contact", "layer", "own")},
    "architecture": lambda bad, _: group(architecture={"width": [bad]}),
    "provenance": lambda bad, _: group(architecture={bad: 1}),
    "clip id": lambda bad, _: PlannedClip(bad, "m"),
    "movie": lambda bad, _: PlannedClip("a", bad),
    "text": lambda bad, _: PlannedClip("a", "", text=bad),
    "reason": lambda bad, _: ClipResult("a", "failed", bad),
    "corpus.name": lambda bad, path: staged(path, bad),
    "citation": lambda bad, path: seal(staged(path, "toy"), path / "s", licence="MIT", citation=bad),
}
"""What takes a text -> how to hand it one."""


@pytest.mark.parametrize("bad", ALL)
@pytest.mark.parametrize("place", WAYS_IN)
def test_nothing_takes_them_in(tmp_path, place, bad):
    with pytest.raises(StoreError, match=place):
        WAYS_IN[place](f"a{bad}", tmp_path)
    assert not (tmp_path / "s-1.0.0").exists()


HOSTILE = {
    "citation": lambda about, _: about.update(citation=f"me {CLEAR}"),
    "corpus": lambda about, _: about["corpus"].update(name=f"toy {TITLE}"),
    "an attribute of its own": lambda about, _: about.update(note=["fine", {"a": C1}]),
    "provenance": lambda _, provenance: provenance.update(contact=f"a{BIDI}"),
    "a key": lambda _, provenance: provenance["architecture"].update({f"a{TITLE}": 1}),
    "a line more": lambda about, _: about.update(citation="me\nfingerprint 00"),
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_full_verification_finds_them_and_inspect_shows_them_escaped(tmp_path, capsys, change):
    store = sealed(tmp_path)
    say_of_itself(store, change)
    assert verify(store).ok  # the digests fit
    assert any("holds the" in problem.what for problem in verify(store, "full").problems)
    for words in (["inspect"], ["inspect", "--json"], ["verify", "--full"]):
        obygaze("store", *words, store)
        out, err = capsys.readouterr()
        assert unsuitable(out + err, lines=True) is None
        assert "\nfingerprint 00" not in out
    obygaze("store", "inspect", store, "--json")
    assert json.loads(capsys.readouterr().out)["citation"] == open_store(store).attributes["citation"]


@pytest.mark.parametrize("place", ["movie", "reason"])
def test_full_verification_finds_them_in_the_table_of_clips(tmp_path, place):
    store = sealed(tmp_path)
    table = store / "data/clips.csv"
    lines = table.read_text(encoding="utf-8").split("\n")
    cells = lines[1].split(",")
    cells[{"reason": 3, "movie": 4}[place]] = f"x{BIDI}"
    table.write_text("\n".join([lines[0], ",".join(cells), *lines[2:]]), encoding="utf-8")
    resealed(store)
    assert verify(store).ok
    whats = [problem.what for problem in verify(store, "full").problems]
    assert any(f"{place} holds the bidirectional character U+202E" in what for what in whats)
