"""MP4 files whose edit list shows several parts of a film, one after the other."""

import pytest

from obygaze_features.video import probe, read_frames, uniform
from tests.video.conftest import draw_number
from tests.video.encoding import encode

EDIT_BYTES = 12
"""Bytes of an edit: its length, where it begins in the film, its rate."""


def show_twice(film):
    """Repeat the one edit of a film's edit list: a player shows the film, and then shows it again."""
    data = bytearray(film.read_bytes())
    kind_at = data.index(b"elst")
    n_edits_at = kind_at + 8  # behind the kind and the version
    edit_at = n_edits_at + 4
    edit = data[edit_at : edit_at + EDIT_BYTES]
    data[n_edits_at:edit_at] = (2).to_bytes(4, "big")
    data[edit_at:edit_at] = edit
    for box in (b"elst", b"edts", b"trak", b"moov"):  # each holds the one before it
        size_at = data.index(box) - 4
        size = int.from_bytes(data[size_at : size_at + 4], "big")
        data[size_at : size_at + 4] = (size + EDIT_BYTES).to_bytes(4, "big")
    film.write_bytes(data)
    return film


@pytest.mark.parametrize(("n_b_pictures", "is_noted"), [("2", True), ("0", False)])
def test_a_film_of_several_edits_has_a_note_if_its_pictures_are_reordered(tmp_path, n_b_pictures, is_noted):
    """An MP4 of 24 pictures has an edit list that shows the film twice: players show 48 pictures.

    All are read, so that the status is "ok". But if pictures are reordered, because the film has B-pictures
    (`bf`, two between others), FFmpeg may give pictures of the second showing up to two frames too late. A
    note says so; without B-pictures there is none.
    """
    options = {"bf": n_b_pictures, "g": "12"}  # a key picture every 12
    film = encode(tmp_path / "a.mp4", map(draw_number, range(24)), options=options)
    show_twice(film)

    frames = read_frames(film, uniform(4))

    assert probe(film).frames == 48
    assert any("several parts" in note for note in frames.notes) == is_noted
    assert frames.status == "ok"


def test_a_film_whose_edit_list_shows_it_once_has_no_note_on_the_edit_list(tmp_path):
    """An MP4 of 24 pictures, two B-pictures between others, has an edit list of one part: the whole film.

    Every encoder writes such a list, which moves no picture.
    """
    film = encode(tmp_path / "a.mp4", map(draw_number, range(24)), options={"bf": "2", "g": "12"})

    notes = read_frames(film, uniform(4)).notes

    assert not any("edit list" in note for note in notes)
