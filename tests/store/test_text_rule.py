"""No store is sealed with texts that a terminal obeys; one made otherwise is found and shown unharmed."""

import json

import pytest

from obygaze.cli import main
from obygaze_features.errors import StoreError
from obygaze_features.exchange.merge import merge
from obygaze_features.store import PlannedClip, Stage, open_store, seal, staging_path, verify
from obygaze_features.store.records import ClipResult
from obygaze_features.text import unsuitable

from .hostile_stores import resealed, say_of_itself
from .toy_stores import CORPUS, group, plan, result, sealed

TITLE, CLEAR, C1, BIDI = "\x1b]0;mine\x07", "\x1b[2J", "\x9b2J", "\u202e"
ALL = [TITLE, CLEAR, C1, BIDI]


@pytest.mark.parametrize("bad", ALL)
@pytest.mark.parametrize("field", ["citation", "contact", "layer", "own", "architecture"])
def test_no_provenance_holds_them(bad, field):
    value = {"width": [f"a{bad}"]} if field == "architecture" else f"a{bad}"
    with pytest.raises(StoreError, match=f"{field}"):
        group(**{field: value})
    with pytest.raises(StoreError):
        group(architecture={f"a{bad}": 1})


@pytest.mark.parametrize("bad", ALL)
def test_no_stage_holds_them(tmp_path, bad):
    with pytest.raises(StoreError, match="clip id"):
        PlannedClip(f"a{bad}", "m")
    with pytest.raises(StoreError, match="movie"):
        PlannedClip("a", f"m{bad}")
    with pytest.raises(StoreError, match="text"):
        PlannedClip("a", "", text=f"a{bad}")
    with pytest.raises(StoreError, match="reason"):
        ClipResult("a", "failed", f"no{bad}")
    with pytest.raises(StoreError, match=r"corpus.name"):
        Stage.open(staging_path(tmp_path / "s"), plan(2), [group()], {**CORPUS, "name": f"toy{bad}"})
    assert PlannedClip("a", "", text="two\nlines\tand more").text is not None


@pytest.mark.parametrize("bad", ALL)
def test_no_store_is_sealed_or_merged_with_them(tmp_path, bad):
    kind = group()
    stage = Stage.open(staging_path(tmp_path / "s"), plan(2), [kind], CORPUS)
    with stage.writer() as writer:
        writer.commit([result(clip.clip_id, [kind]) for clip in stage.clips])
    with pytest.raises(StoreError, match="citation"):
        seal(stage.path, tmp_path / "s", licence="CC0-1.0", citation=f"me{bad}")
    one = seal(stage.path, tmp_path / "s", licence="CC0-1.0")
    with pytest.raises(StoreError, match="citation"):
        merge([one, one], tmp_path / "merged", citation=f"me{bad}")
    assert not (tmp_path / "merged-1.0.0").exists()


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
        with pytest.raises(SystemExit):
            main(["store", *words, str(store)])
        out, err = capsys.readouterr()
        assert unsuitable(out + err, lines=True) is None
        assert "\nfingerprint 00" not in out
    with pytest.raises(SystemExit):
        main(["store", "inspect", str(store), "--json"])
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
