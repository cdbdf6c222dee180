"""Clips with the same pictures are found whatever was done to them, and others are not."""

import csv
from itertools import combinations

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from obygaze_features.backbones.signature import CELLS, FEATURES, SIGNS, describe, encode, prepare
from obygaze_features.commands import store_duplicates
from obygaze_features.errors import StoreError
from obygaze_features.same_pictures import FEATURES as COMPARED
from obygaze_features.same_pictures import (
    MOST_MOVIES,
    ROW,
    duplicates,
    expected_s,
    has_signatures,
)
from obygaze_features.signature_likeness import mirror_halves, mirrored
from obygaze_features.store import open_store
from obygaze_features.store.testing import seal_arrays
from tests.command import obygaze
from tests.later import later
from tests.store.toy_stores import sealed
from tests.video import encoding

Image, ImageDraw, ImageFont = later("PIL.Image"), later("PIL.ImageDraw"), later("PIL.ImageFont")


def moving(seed, n=12, height=96, width=160):
    """Draw a clip [n, height, width, 3] of blocks of colour that wander."""
    rng = np.random.default_rng(seed)
    small = rng.integers(0, 256, (height // 16 + n, width // 16 + n, 3), dtype=np.uint8)
    whole = small.repeat(16, axis=0).repeat(16, axis=1)
    return np.stack(
        [
            whole[4 * frame : 4 * frame + height, : 3 * n + width][:, 3 * frame : 3 * frame + width]
            for frame in range(n)
        ]
    )


def levels(values):
    return np.clip(np.round(values), 0, 255).astype(np.uint8)


def letterboxed(clip):
    """Squash the picture between bars, as a wider film on an older screen has them."""
    out = np.zeros_like(clip)
    kept = clip[:, np.arange(72) * clip.shape[1] // 72]
    out[:, 12:84] = kept
    return out


def subtitled(clip):
    clip = clip.copy()
    clip[:, -14:-6, 30:-30:3] = 255
    return clip


WAYS = {
    "same": lambda clip: clip,
    "mirrored": lambda clip: clip[:, :, ::-1],
    "cropped": lambda clip: clip[:, 5:-5, 8:-8],
    "panned": lambda clip: clip[:, :, 20:-20],
    "letterboxed": letterboxed,
    "subtitled": subtitled,
    "brighter": lambda clip: levels(clip + 20.0),
    "gamma": lambda clip: levels(255 * (clip / 255) ** 0.8),
    "contrast": lambda clip: levels((clip - 128.0) * 1.15 + 128),
    "grey": lambda clip: levels((clip @ [0.299, 0.587, 0.114])[..., None].repeat(3, axis=3)),
    "warm": lambda clip: levels(clip * np.array([1.15, 1.0, 0.8]) + [8, 0, -8]),
    "coarse": lambda clip: clip // 8 * 8 + 3,
}


def sampled(frames, n=8):
    """Take frames of a clip as the backbone does."""
    return np.stack(
        [prepare(np.ascontiguousarray(frames[int((k + 0.5) * len(frames) / n)])) for k in range(n)]
    )


def store_of(folder, clips, movies=None, spans=None):
    """Seal the signatures of clips [F, h, w, 3]."""
    values = np.concatenate([encode(sampled(clip)[None])["frames"] for clip in clips.values()])
    return seal(folder, values, movies or {name: name for name in clips}, spans=spans)


def seal(folder, values, movies, **more):
    more |= {"n_frames": values.shape[1], "architecture": {"features": list(FEATURES)}}
    return open_store(seal_arrays(folder, movies, {"signature": {"frames": values}}, **more))


def groups(found):
    alike = {}
    for each in found.clips:
        alike.setdefault(each.group, set()).add(each.clip)
    return {frozenset(names) for names in alike.values()}


def test_the_same_pictures_are_found_whatever_was_done_to_them(tmp_path):
    clip = moving(0, n=16)
    others = {f"other-{seed}": moving(seed) for seed in range(1, 7)}
    first = store_of(tmp_path / "a", {"clip": clip[:12], **others})
    second = store_of(
        tmp_path / "b", {name: way(clip[:12]) for name, way in WAYS.items()} | {"later": clip[3:15]}
    )
    found = duplicates(first, second)
    assert groups(found) == {frozenset({"clip", "later", *WAYS})}
    assert {each.clip for each in found.clips if each.likeness == 1} >= {"clip", "same"}
    assert (found.compared, found.plain) == ((7, 13), (0, 0))
    assert {(each.clip, each.store) for each in found.clips} == {
        ("clip", 1),
        *((name, 2) for name in (*WAYS, "later")),
    }
    assert groups(duplicates(second, first)) == groups(found)


def test_within_a_store_clips_of_different_movies_are_compared(tmp_path):
    clip = moving(0)
    clips = {
        "a-1": clip,
        "a-2": clip,
        "b-1": clip[:, :, ::-1],
        "b-2": moving(1),
        "b-3": moving(2),
        "b-4": moving(2),
    }
    store = store_of(tmp_path / "a", clips, {name: name[0] for name in clips})
    assert groups(duplicates(store)) == {frozenset({"a-1", "a-2", "b-1"})}
    assert duplicates(store, only={"a-1", "b-2"}).clips == ()
    assert duplicates(store, only=()).compared == (0,)


def test_clips_that_show_nothing_are_counted_and_not_compared(tmp_path):
    black, fog = np.zeros((8, 96, 160, 3), np.uint8), np.full((8, 96, 160, 3), 200, np.uint8)
    half = np.concatenate([black[:4], moving(0)[:4]])
    store = store_of(tmp_path / "a", {"black": black, "fog": fog, "half": half, "again": half})
    found = duplicates(store)
    assert groups(found) == {frozenset({"again", "half"})}
    assert found.plain == (2,)


def end_credits(seed, n=12, height=160, width=240):
    """Draw names that roll over black, in sizes and columns of their own."""
    rng = np.random.default_rng(seed)
    size, left = int(rng.integers(11, 20)), int(rng.integers(10, 120))
    page = Image.new("RGB", (width, height + 40 * n))
    draw, font = ImageDraw.Draw(page), ImageFont.load_default(size)
    for line in range(0, page.height, int(size * rng.uniform(1.3, 2.2))):
        words = ["".join(rng.choice(list("abcdeimnorst"), rng.integers(3, 9))).title() for _ in range(3)]
        draw.text((left, line), f"{words[0]}   {words[1]} {words[2]}", fill=(230, 230, 230), font=font)
    step = int(rng.integers(20, 40))
    return np.stack([np.asarray(page)[step * frame : step * frame + height] for frame in range(n)])


def test_credits_of_different_films_do_not_look_alike(tmp_path):
    store = store_of(tmp_path / "a", {f"film-{seed}": end_credits(seed) for seed in range(16)})
    assert duplicates(store).clips == ()


def test_movies_are_named_for_clips_in_a_row_and_not_for_some(tmp_path):
    shown = [moving(seed) for seed in range(ROW + 2)]
    new = iter(range(100, 200))
    rows = {
        "whole": shown,
        "copy": [moving(next(new)), *[clip[:, :, ::-1] for clip in shown[1 : ROW + 1]]],
        "short": [moving(next(new)), *shown[: ROW - 1], moving(next(new))],
        "mixed": [shown[3], shown[0], shown[2], shown[5], shown[1]],
    }
    clips = {f"{movie}-{k}": clip for movie, made in rows.items() for k, clip in enumerate(made)}
    spans = {name: (float(name.partition("-")[2]), float(name.partition("-")[2]) + 1) for name in clips}
    store = store_of(tmp_path / "a", clips, {name: name.partition("-")[0] for name in clips}, spans)
    found = duplicates(store)
    assert {(each.movie_a, each.movie_b, each.clips) for each in found.movies} == {("copy", "whole", ROW)}
    assert len(groups(found)) == ROW + 2


def test_a_picture_that_many_movies_have_is_a_group_and_says_nothing_of_them(tmp_path):
    clips = {f"m{movie}-{k}": moving(k) for movie in range(MOST_MOVIES + 1) for k in range(ROW)}
    found = duplicates(store_of(tmp_path / "a", clips, {name: name.partition("-")[0] for name in clips}))
    assert found.movies == ()
    assert len(groups(found)) == ROW


def test_halves_of_a_view_give_the_product_with_another_and_with_it_mirrored():
    rng = np.random.default_rng(0)
    ours, theirs = rng.normal(size=(2, 5, SIGNS)).astype(np.float32)
    stays, turns = mirror_halves()
    both = np.concatenate([stays, turns], axis=1)
    np.testing.assert_allclose(both.T @ both, np.eye(SIGNS), atol=1e-6)
    first = (ours @ stays) @ (theirs @ stays).T
    second = (ours @ turns) @ (theirs @ turns).T
    np.testing.assert_allclose(first + second, ours @ theirs.T, atol=1e-4)
    np.testing.assert_allclose(first - second, ours @ mirrored(theirs).T, atol=1e-4)


@given(st.integers(0, 2**32))
def test_the_mirrored_signature_is_the_signature_of_the_mirrored_clip(seed):
    clip = np.random.default_rng(seed).integers(0, 256, (2, CELLS * 4, CELLS * 5), dtype=np.uint8)
    whole = describe(clip)[:, :SIGNS]
    np.testing.assert_array_equal(describe(clip[:, :, ::-1])[:, :SIGNS], mirrored(whole))
    np.testing.assert_array_equal(mirrored(mirrored(whole)), whole)


def test_stores_that_cannot_be_compared_are_refused(tmp_path):
    known = store_of(tmp_path / "a", {"one": moving(0)})
    shorter = seal(tmp_path / "b", np.ones((1, 4, len(FEATURES)), "f2"), {"x": "m"})
    other = seal(tmp_path / "c", np.ones((1, 8, 3), "f2"), {"x": "m"})
    few = seal(tmp_path / "d", np.ones((1, 3, len(FEATURES)), "f2"), {"x": "m"})
    for store in (open_store(sealed(tmp_path, 3)), shorter, other, few):
        with pytest.raises(StoreError):
            duplicates(known, store)
    assert has_signatures(known)
    assert not has_signatures(other)
    assert not has_signatures(few)


@pytest.mark.parametrize("value", [2, 0.5, -0.001, 65504])
def test_values_that_are_no_signs_are_refused_and_the_clip_is_named(tmp_path, value):
    values = encode(np.stack([sampled(moving(seed)) for seed in range(3)]))["frames"]
    values[1, 4, 700] = value
    store = seal(tmp_path / "a", values, {name: name for name in ("one", "two", "three")})
    with pytest.raises(StoreError, match="two"):
        duplicates(store)
    assert duplicates(store, only={"one", "three"}).compared == (2,)


def test_the_columns_are_those_that_the_backbone_makes():
    assert list(FEATURES) == COMPARED


def test_the_command_writes_all_clips_and_prints_the_nearest(tmp_path, capsys):
    clip = moving(0)
    store_of(tmp_path / "a", {"one": clip, "two": clip[:, :, ::-1]})
    assert obygaze("store", "duplicates", tmp_path / "a-1.0.0", "--out", tmp_path / "same.csv") == 0
    with (tmp_path / "same.csv").open(newline="") as file:
        one, two = csv.DictReader(file)
    assert (one["clip"], two["movie"], one["group"]) == ("one", "two", "1")
    assert "2 clips" in capsys.readouterr().out


def test_what_is_not_compared_is_said(tmp_path, capsys):
    values = encode(np.stack([sampled(moving(seed)) for seed in range(2)]))["frames"]
    seal(tmp_path / "a", values, dict.fromkeys("xy", "m"), failed={"y": "?"})
    assert obygaze("store", "duplicates", tmp_path / "a-1.0.0") == 0
    assert "among 1; 1 clip has no signature; all are of one movie" in capsys.readouterr().out


def test_a_comparison_that_takes_long_is_announced(tmp_path, capsys, monkeypatch):
    two = store_of(tmp_path / "a", {"one": moving(0), "two": moving(1)})
    other = store_of(tmp_path / "b", {"x": moving(2), "y": moving(3), "z": moving(4)})
    assert expected_s(two, other) == tuple(6 * each for each in expected_s(two))
    assert obygaze("store", "duplicates", tmp_path / "a-1.0.0") == 0
    assert "CPU s" not in capsys.readouterr().err
    monkeypatch.setattr(store_duplicates, "SAID_S", 0)
    assert obygaze("store", "duplicates", tmp_path / "a-1.0.0") == 0
    assert "CPU s" in capsys.readouterr().err


# --- real clips
# ---------------------------------------------------------------------------
FIXED_ON = ("arm_wrestling.mp4", "flipping_a_pancake.mkv")
"""Videos that the limits were fixed on; the others tell what they are worth."""
REAL = ("nasa_13013.mp4", "test.avi", "v_GGSY1Qvo990.mp4")


@pytest.mark.long
@pytest.mark.nightly
def test_real_clips_are_found_and_others_are_not(tmp_path, shared_data):
    """Alone it decodes real films and encodes copies of their clips: 9 of 10 of each way are found."""
    rate, length = 10, 50  # clips of 5 s, every second
    originals, copies = {}, {how: {} for how in (*WAYS, "codec", "later", "PAL")}
    for name in (*REAL, *FIXED_ON):
        with av.open(str(shared_data / "videos" / name)) as film:
            stream = max(film.streams.video, key=lambda each: each.height)
            small = {"width": 240, "height": 160, "format": "rgb24"}
            frames = [frame.to_ndarray(**small) for frame in film.decode(stream)]
            every = float(stream.average_rate) / rate
        frames = np.array([frames[int(place * every)] for place in range(int(len(frames) / every))])
        for start in range(0, len(frames) - length - 2, 10):
            clip = f"{name}@{start}"
            originals[clip] = frames[start : start + length]
            if name in FIXED_ON:
                continue
            for how, way in WAYS.items():
                copies[how][clip] = recoded(
                    tmp_path, way(originals[clip]), "libx264", crf="23", preset="veryfast"
                )
            copies["codec"][clip] = recoded(tmp_path, originals[clip], "libx264", crf="35", preset="veryfast")
            copies["later"][clip] = frames[start + 2 : start + 2 + length]
            copies["PAL"][clip] = originals[clip][: length * 24 // 25]
    movies = {clip: clip.partition("@")[0] for clip in originals}
    known = store_of(tmp_path / "known", originals, movies)
    assert sum(movies[a] != movies[b] for a, b in combinations(originals, 2)) >= 390
    assert not duplicates(known).clips
    for how, clips in copies.items():
        store = store_of(tmp_path / how, {f"{clip}+": frames for clip, frames in clips.items()})
        found = duplicates(known, store)
        together = {frozenset(names) for names in groups(found)}
        same = sum(any({clip, f"{clip}+"} <= names for names in together) for clip in clips)
        assert same >= 0.9 * len(clips), (how, same, len(clips))
        for names in together:
            assert len({name.partition("@")[0] for name in names}) == 1, how


def recoded(folder, frames, codec, **options):
    even = [np.ascontiguousarray(frame[: len(frame) // 2 * 2, : frame.shape[1] // 2 * 2]) for frame in frames]
    path = encoding.encode(folder / "copy.mkv", even, codec, rate=10, options=options)
    with av.open(str(path)) as film:
        return np.array([frame.to_ndarray(format="rgb24") for frame in film.decode(video=0)])
