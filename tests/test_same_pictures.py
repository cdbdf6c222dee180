"""Clips with the same pictures are found whatever was done to them, and others are not."""

from dataclasses import dataclass
from itertools import combinations

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from obygaze_features.backbones.signature import (
    CELLS,
    FEATURES,
    FLAT,
    SIGNS,
    describe,
    encode,
    lines_between_borders,
    prepare,
)
from obygaze_features.commands import store_duplicates
from obygaze_features.errors import StoreError
from obygaze_features.same_pictures import FEATURES as COMPARED
from obygaze_features.same_pictures import (
    duplicates,
    expected_s,
    has_signatures,
)
from obygaze_features.signature_likeness import mirror_halves, mirrored
from obygaze_features.store import Store, open_store
from obygaze_features.store.testing import seal_arrays
from tests.command import obygaze
from tests.files import rows_of
from tests.lazy_import import lazy_import
from tests.store.toy_stores import make_sealed_store
from tests.video import encoding

Image = lazy_import("PIL.Image")
ImageDraw = lazy_import("PIL.ImageDraw")
ImageFont = lazy_import("PIL.ImageFont")


def draw_moving_clip(seed, n_frames=12, height=96, width=160):
    """Draw a clip [n_frames, height, width, 3] of coloured blocks that wander 4 pixels up and 3 left."""
    block = 16  # pixels
    rng = np.random.default_rng(seed)
    colours = rng.integers(0, 256, (height // block + n_frames, width // block + n_frames, 3), dtype=np.uint8)
    scene = colours.repeat(block, axis=0).repeat(block, axis=1)
    frames = []
    for frame in range(n_frames):
        top, left = 4 * frame, 3 * frame
        frames.append(scene[top : top + height, left : left + width])
    return np.stack(frames)


def to_bytes(values):
    """Round values to 0 to 255."""
    return np.clip(np.round(values), 0, 255).astype(np.uint8)


def letterboxed(clip):
    """Squash the picture between bars, as a wider film on an older screen has them."""
    screen = np.zeros_like(clip)
    screen[:, 12:84] = clip[:, np.arange(72) * clip.shape[1] // 72]
    return screen


def subtitled(clip):
    """Write strokes of white below."""
    clip = clip.copy()
    clip[:, -14:-6, 30:-30:3] = 255
    return clip


CHANGES = {
    "same": lambda clip: clip,
    "mirrored": lambda clip: clip[:, :, ::-1],
    "cropped": lambda clip: clip[:, 5:-5, 8:-8],
    "panned": lambda clip: clip[:, :, 20:-20],
    "letterboxed": letterboxed,
    "subtitled": subtitled,
    "brighter": lambda clip: to_bytes(clip + 20.0),
    "gamma": lambda clip: to_bytes(255 * (clip / 255) ** 0.8),
    "contrast": lambda clip: to_bytes((clip - 128.0) * 1.15 + 128),
    "grey": lambda clip: to_bytes((clip @ [0.299, 0.587, 0.114])[..., None].repeat(3, axis=3)),
    "warm": lambda clip: to_bytes(clip * np.array([1.15, 1.0, 0.8]) + [8, 0, -8]),
    "coarse": lambda clip: clip // 8 * 8 + 3,
}


def sampled(frames, n=8):
    """Take frames of a clip as the backbone does."""
    places = [int((k + 0.5) * len(frames) / n) for k in range(n)]
    return np.stack([prepare(np.ascontiguousarray(frames[place])) for place in places])


def store_of(folder, clips, movies=None, spans=None):
    """Seal the signatures of clips: name -> frames [F, h, w, 3]; each is a movie unless `movies` tells."""
    signature_of = {}  # by the array of frames, as clips of several names may share one
    for clip in clips.values():
        if id(clip) not in signature_of:
            signature_of[id(clip)] = encode(sampled(clip)[None])["frames"]
    signatures = np.concatenate([signature_of[id(clip)] for clip in clips.values()])
    return seal(folder, signatures, movies or {name: name for name in clips}, spans=spans)


def seal(folder, signatures, movies, **more):
    """Seal signatures [N, F, D] of clips: name -> movie."""
    more |= {"n_frames": signatures.shape[1], "architecture": {"features": list(FEATURES)}}
    return open_store(seal_arrays(folder, movies, {"signature": {"frames": signatures}}, **more))


def sets_of_alike_clips(result):
    """Return the sets of clips that were found to be alike."""
    names_of = {}
    for clip in result.clips:
        names_of.setdefault(clip.group, set()).add(clip.clip)
    return {frozenset(names) for names in names_of.values()}


@dataclass(frozen=True)
class TwoStores:
    """A store with `clip` and six other clips, and one with changed copies of `clip` alone.

    The copies are called as their change in `CHANGES`; `later` begins three frames later.
    """

    originals: Store
    copies: Store


@pytest.fixture(scope="module")
def two_stores(tmp_path_factory):
    """A store of seven clips, and one of thirteen copies of one of them."""
    folder = tmp_path_factory.mktemp("copies")
    frames = draw_moving_clip(seed=0, n_frames=16)
    clip = frames[:12]
    originals = {"clip": clip} | {f"other-{seed}": draw_moving_clip(seed) for seed in range(1, 7)}
    copies = {name: change(clip) for name, change in CHANGES.items()} | {"later": frames[3:15]}
    return TwoStores(store_of(folder / "originals", originals), store_of(folder / "copies", copies))


@pytest.fixture(scope="module")
def comparison(two_stores):
    """What `duplicates` says of the two stores."""
    return duplicates(two_stores.originals, two_stores.copies)


def test_the_same_pictures_are_found_whatever_was_done_to_them(comparison):
    """One store has `clip` and six other clips, the other thirteen copies of `clip`, changed in twelve ways.

    The copies are called as the change, such as "mirrored"; `later` begins three frames later. All
    clips have pictures that can be compared: none is plain.
    """
    copies = {"later", *CHANGES}

    assert sets_of_alike_clips(comparison) == {frozenset({"clip"} | copies)}
    assert comparison.compared == (7, 13)
    assert comparison.plain == (0, 0)


def test_each_clip_in_the_result_has_its_likeness_and_the_number_of_its_store(comparison):
    """Store 1 has the clip `clip`; store 2 has a changed copy of it for each of CHANGES, and `later`.

    Only alike clips are in the result, so that the six other clips of store 1 are not. The likeness of a clip
    is that to the clip that is nearest to it. `same` is an unchanged copy of `clip`, so that both have 1.
    """
    likeness_of_clip = {clip.clip: clip.likeness for clip in comparison.clips}
    store_of_clip = {clip.clip: clip.store for clip in comparison.clips}

    assert likeness_of_clip["clip"] == 1
    assert likeness_of_clip["same"] == 1
    assert store_of_clip == {"clip": 1, "later": 2} | dict.fromkeys(CHANGES, 2)


def test_the_order_of_stores_does_not_matter(two_stores, comparison):
    """The comparison is of the originals with the copies; the same clips are found the other way round."""
    backwards = duplicates(two_stores.copies, two_stores.originals)

    assert sets_of_alike_clips(backwards) == sets_of_alike_clips(comparison)


@pytest.fixture(scope="module")
def two_films(tmp_path_factory):
    """A store of the films a and b: a-1, a-2 and, mirrored, b-1 are one clip; b-3 and b-4 are another."""
    clips = {
        "a-1": draw_moving_clip(0),
        "a-2": draw_moving_clip(0),
        "b-1": draw_moving_clip(0)[:, :, ::-1],
        "b-2": draw_moving_clip(1),
        "b-3": draw_moving_clip(2),
        "b-4": draw_moving_clip(2),
    }
    return store_of(tmp_path_factory.mktemp("films") / "films", clips, {name: name[0] for name in clips})


def test_within_a_store_clips_of_different_movies_are_compared(two_films):
    """The clips a-1, a-2 and b-1 have the same pictures, in the films a and b.

    So have b-3 and b-4, but of one film, and these two are not found.
    """
    result = duplicates(two_films)

    assert sets_of_alike_clips(result) == {frozenset({"a-1", "a-2", "b-1"})}


def test_a_part_of_the_clips_may_be_compared(two_films):
    """The clips a-1 and b-1 have the same pictures, and b-2 has others.

    If a-1 and b-2 alone are compared, no two are alike. If none are, none are counted as compared.
    """
    assert duplicates(two_films, only={"a-1", "b-2"}).clips == ()
    assert duplicates(two_films, only=()).compared == (0,)


def test_clips_of_one_even_colour_are_counted_as_plain_and_not_compared(tmp_path):
    """One clip is black and one of even fog: both have nothing by which they could be told from others.

    Two clips are half black and have the same pictures otherwise; these are compared, and found.
    """
    black = np.zeros((8, 96, 160, 3), np.uint8)
    fog = np.full((8, 96, 160, 3), 200, np.uint8)
    half_black = np.concatenate([black[:4], draw_moving_clip(seed=0)[:4]])
    clips = {"black": black, "fog": fog, "half": half_black, "again": half_black}

    result = duplicates(store_of(tmp_path / "a", clips))

    assert sets_of_alike_clips(result) == {frozenset({"again", "half"})}
    n_plain_of_each_store = result.plain
    assert n_plain_of_each_store == (2,)


def draw_end_credits(seed, n_frames=12, height=160, width=240):
    """Draw names that roll over black, in sizes and columns of their own."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(11, 20))
    left = int(rng.integers(10, 120))
    font = ImageFont.load_default(size)
    page = Image.new("RGB", (width, height + 40 * n_frames))
    draw = ImageDraw.Draw(page)
    letters = list("abcdeimnorst")
    for line in range(0, page.height, int(size * rng.uniform(1.3, 2.2))):
        role, name, surname = ("".join(rng.choice(letters, rng.integers(3, 9))).title() for _ in range(3))
        draw.text((left, line), f"{role}   {name} {surname}", fill=(230, 230, 230), font=font)
    step = int(rng.integers(20, 40))
    pixels = np.asarray(page)
    return np.stack([pixels[step * frame : step * frame + height] for frame in range(n_frames)])


def test_credits_of_different_films_do_not_look_alike(tmp_path):
    """Sixteen films end in names that roll over black: white letters in other places, sizes and words."""
    credits_of_film = {f"film-{number}": draw_end_credits(seed=number) for number in range(16)}

    result = duplicates(store_of(tmp_path / "a", credits_of_film))

    assert result.clips == ()


def store_of_movies(folder, movies):
    """Seal movies: name -> its clips in order, which are called NAME-0, NAME-1, ... and last a second."""
    clips = {}
    movie_of = {}
    spans = {}
    for movie, scenes in movies.items():
        for number, scene in enumerate(scenes):
            name = f"{movie}-{number}"
            clips[name] = scene
            movie_of[name] = movie
            spans[name] = (float(number), float(number + 1))
    return store_of(folder, clips, movie_of, spans)


def test_two_movies_with_four_same_clips_in_a_row_are_named_as_having_the_same_pictures(tmp_path):
    """One movie is four scenes and another one; the other is one more, and the four scenes mirrored.

    Four clips in a row are the least for which movies are named.
    """
    scenes = [draw_moving_clip(seed) for seed in range(4)]
    mirrored_scenes = [scene[:, :, ::-1] for scene in scenes]
    movies = {
        "whole": [*scenes, draw_moving_clip(seed=100)],
        "copy": [draw_moving_clip(seed=101), *mirrored_scenes],
    }

    result = duplicates(store_of_movies(tmp_path / "a", movies))

    (pair,) = result.movies
    assert pair.movie_a == "copy"
    assert pair.movie_b == "whole"
    assert pair.clips == 4


def test_movies_are_not_named_for_three_same_clips_in_a_row(tmp_path):
    """It takes four. The three clips themselves are found, each with its copy."""
    scenes = [draw_moving_clip(seed) for seed in range(3)]
    movies = {
        "whole": [*scenes, draw_moving_clip(seed=100)],
        "short": [draw_moving_clip(seed=101), *scenes, draw_moving_clip(seed=102)],
    }

    result = duplicates(store_of_movies(tmp_path / "a", movies))

    assert len(sets_of_alike_clips(result)) == 3
    assert result.movies == ()


def test_movies_are_not_named_for_same_clips_in_another_order(tmp_path):
    """Five of the six scenes of a movie are in another, but nowhere four in the same order."""
    scenes = [draw_moving_clip(seed) for seed in range(6)]
    mixed = [scenes[3], scenes[0], scenes[2], scenes[5], scenes[1]]

    result = duplicates(store_of_movies(tmp_path / "a", {"whole": scenes, "mixed": mixed}))

    assert len(sets_of_alike_clips(result)) == 5
    assert result.movies == ()


@pytest.mark.long
def test_movies_are_not_named_for_pictures_that_many_movies_have(tmp_path):
    """Four clips are the same in 21 movies, more than 20: the logo of a company, say, and no copy."""
    logo = [draw_moving_clip(seed) for seed in range(4)]
    movies = {f"m{number}": logo for number in range(21)}

    result = duplicates(store_of_movies(tmp_path / "a", movies))

    assert len(sets_of_alike_clips(result)) == 4
    assert result.movies == ()


@pytest.fixture
def halves():
    """Two matrices [264, 132]: of what stays the same in the mirror image, and of what changes its sign."""
    stays, turns = mirror_halves()
    return stays, turns


def test_the_halves_of_a_signature_are_at_right_angles(halves):
    """A signature of 264 numbers is compared in two halves of 132, each made by a matrix [264, 132].

    Side by side, the two matrices are a rotation, whose transpose undoes it: nothing of a signature is lost.
    """
    rotation = np.concatenate(halves, axis=1)

    np.testing.assert_allclose(rotation.T @ rotation, np.eye(264), atol=1e-6)


def test_two_products_of_halves_compare_a_signature_with_another_and_with_its_mirror_image(halves):
    """One half of a signature stays the same in the mirror image, the other changes its sign.

    The products of the halves add up to the comparison with a signature; their difference is that with its
    mirror image.
    """
    ours, theirs = np.random.default_rng(0).normal(size=(2, 5, SIGNS)).astype(np.float32)
    stays, turns = halves

    product_of_what_stays = (ours @ stays) @ (theirs @ stays).T
    product_of_what_turns = (ours @ turns) @ (theirs @ turns).T

    comparison = ours @ theirs.T
    comparison_with_mirror_image = ours @ mirrored(theirs).T
    np.testing.assert_allclose(product_of_what_stays + product_of_what_turns, comparison, atol=1e-4)
    np.testing.assert_allclose(
        product_of_what_stays - product_of_what_turns, comparison_with_mirror_image, atol=1e-4
    )


@given(st.integers(0, 2**32))
def test_the_mirrored_signature_is_the_signature_of_the_mirrored_clip(seed):
    """`mirrored` computes from a signature that of the clip as a mirror shows it.

    The clip is two frames of noise, which divide into CELLS x CELLS squares. A signature has the signs (-1, 0
    or 1) of the differences between neighbouring squares, SIGNS numbers for each view. The first view is the
    whole frame. Mirroring twice changes nothing.
    """
    clip = np.random.default_rng(seed).integers(0, 256, (2, CELLS * 4, CELLS * 5), dtype=np.uint8)
    mirrored_clip = clip[:, :, ::-1]

    signature = describe(clip)[:, :SIGNS]  # of the first view
    signature_of_mirrored_clip = describe(mirrored_clip)[:, :SIGNS]

    np.testing.assert_array_equal(mirrored(signature), signature_of_mirrored_clip)
    np.testing.assert_array_equal(mirrored(mirrored(signature)), signature)


@pytest.fixture
def store_of_one_clip(tmp_path):
    """A store with the signatures of eight frames of one clip."""
    return store_of(tmp_path / "known", {"one": draw_moving_clip(seed=0)})


@pytest.mark.parametrize(
    "shape",
    [(1, 4, len(FEATURES)), (1, 3, len(FEATURES)), (1, 8, 3)],
    ids=["of four frames", "of three frames", "of three features"],
)
def test_signatures_of_another_shape_are_not_compared(store_of_one_clip, tmp_path, shape):
    """A store has [clips, frames, features]: in the first, eight frames a clip."""
    other_store = seal(tmp_path / "other", np.ones(shape, "f2"), {"x": "m"})

    with pytest.raises(StoreError):
        duplicates(store_of_one_clip, other_store)


def test_a_store_without_signatures_is_not_compared(store_of_one_clip, tmp_path):
    """It has features of another backbone."""
    store_of_another_backbone = open_store(make_sealed_store(tmp_path, 3))

    with pytest.raises(StoreError):
        duplicates(store_of_one_clip, store_of_another_backbone)


def test_a_store_has_signatures_if_its_array_has_their_shape(store_of_one_clip, tmp_path):
    """A clip has four frames or more, each with all features of the backbone `signature`."""
    of_three_features = seal(tmp_path / "features", np.ones((1, 8, 3), "f2"), {"x": "m"})
    of_three_frames = seal(tmp_path / "frames", np.ones((1, 3, len(FEATURES)), "f2"), {"x": "m"})

    assert has_signatures(store_of_one_clip)
    assert not has_signatures(of_three_features)
    assert not has_signatures(of_three_frames)


@pytest.mark.parametrize("value", [2, 0.5, -0.001, 65504])
def test_a_clip_whose_signature_has_a_number_that_is_no_sign_is_refused_by_its_name(tmp_path, value):
    """The numbers of a signature are signs, -1, 0 or 1. A store, of other software, has another one in `two`.

    The other clips, `one` and `three`, can still be compared.
    """
    signatures = encode(np.stack([sampled(draw_moving_clip(seed)) for seed in range(3)]))["frames"]
    row_of_two, any_frame, any_sign = 1, 4, 700
    signatures[row_of_two, any_frame, any_sign] = value
    store = seal(tmp_path / "a", signatures, {"one": "one", "two": "two", "three": "three"})

    with pytest.raises(StoreError, match="two"):
        duplicates(store)
    n_compared_of_each_store = duplicates(store, only={"one", "three"}).compared
    assert n_compared_of_each_store == (2,)


def test_the_compared_features_are_those_of_the_backbone():
    """The backbone `signature` and the comparison, which may not import it, each list the names."""
    assert list(FEATURES) == COMPARED


def test_store_duplicates_prints_how_many_clips_are_alike_and_writes_a_line_for_each(tmp_path, capsys):
    """A store has a clip and its mirror image, which are alike: both are in the group with the number 1."""
    clip = draw_moving_clip(seed=0)
    store_of(tmp_path / "a", {"one": clip, "two": clip[:, :, ::-1]})  # is sealed as a-1.0.0

    assert obygaze("store", "duplicates", tmp_path / "a-1.0.0", "--out", tmp_path / "same.csv") == 0

    assert "2 clips" in capsys.readouterr().out
    first, second = rows_of(tmp_path / "same.csv")
    assert (first["clip"], first["group"]) == ("one", "1")
    assert (second["clip"], second["group"]) == ("two", "1")


def test_the_command_counts_what_is_not_compared(tmp_path, capsys):
    """Of two clips of one movie one has failed; the other has none to be compared with.

    Only clips of different movies are compared, by their signatures.
    """
    signatures = encode(np.stack([sampled(draw_moving_clip(seed)) for seed in range(2)]))["frames"]
    seal(tmp_path / "a", signatures, {"x": "m", "y": "m"}, failed={"y": "?"})

    assert obygaze("store", "duplicates", tmp_path / "a-1.0.0") == 0

    assert "among 1; 1 clip has no signature; all are of one movie" in capsys.readouterr().out


def test_the_expected_time_of_a_comparison_grows_with_its_pairs(tmp_path):
    """Two clips within a store are one pair; two clips and three of another store are six pairs.

    The expected time is two numbers of seconds: if no two clips look similar, and if all do.
    """
    two_clips = store_of(tmp_path / "a", {"one": draw_moving_clip(seed=0), "two": draw_moving_clip(seed=1)})
    three_clips = store_of(tmp_path / "b", {name: draw_moving_clip(seed=2) for name in ("x", "y", "z")})

    seconds_of_one_pair = expected_s(two_clips)
    seconds_of_six_pairs = expected_s(two_clips, three_clips)

    assert seconds_of_six_pairs == tuple(6 * seconds for seconds in seconds_of_one_pair)


@pytest.mark.parametrize(
    ("announced_from_s", "is_announced"),
    [(store_duplicates.MIN_ANNOUNCED_S, False), (0, True)],
    ids=["short", "long"],
)
def test_a_comparison_that_takes_long_is_announced(
    tmp_path, capsys, monkeypatch, announced_from_s, is_announced
):
    """Two clips are compared at once; from `announced_from_s` expected seconds on a line announces them."""
    monkeypatch.setattr(store_duplicates, "MIN_ANNOUNCED_S", announced_from_s)
    store_of(tmp_path / "a", {"one": draw_moving_clip(seed=0), "two": draw_moving_clip(seed=1)})

    assert obygaze("store", "duplicates", tmp_path / "a-1.0.0") == 0

    assert ("CPU s" in capsys.readouterr().err) == is_announced


# --- real clips
# ---------------------------------------------------------------------------
FIXED_ON = ("arm_wrestling.mp4", "flipping_a_pancake.mkv")
"""Videos that the limits were fixed on; the others tell what they are worth."""
REAL = ("nasa_13013.mp4", "test.avi", "v_GGSY1Qvo990.mp4")
RATE = 10
"""Frames a second that are taken of them."""
LENGTH = 50
"""Frames of a clip: 5 s."""


def ten_frames_a_second(path):
    """Decode a film small, at ten frames a second."""
    with av.open(str(path)) as film:
        stream = max(film.streams.video, key=lambda stream: stream.height)
        frames = [frame.to_ndarray(width=240, height=160, format="rgb24") for frame in film.decode(stream)]
        step = float(stream.average_rate) / RATE
    return np.array([frames[int(index * step)] for index in range(int(len(frames) / step))])


def film_of(name):
    """Return the film of a real clip, which is called FILM@FRAME."""
    film, _, _ = name.partition("@")
    return film


@pytest.fixture(scope="module")
def real_clips(shared_data):
    """Clips of 5 s of each film, one from every second and .2 s more: name -> frames."""
    clips = {}
    for name in (*REAL, *FIXED_ON):
        frames = ten_frames_a_second(shared_data / "videos" / name)
        for start in range(0, len(frames) - LENGTH - 2, 10):
            clips[f"{name}@{start}"] = frames[start : start + LENGTH + 2]
    return clips


@pytest.fixture(scope="module")
def store_of_real_clips(tmp_path_factory, real_clips):
    """Their store."""
    clips = {name: frames[:LENGTH] for name, frames in real_clips.items()}
    movies = {name: film_of(name) for name in clips}
    return store_of(tmp_path_factory.mktemp("known") / "known", clips, movies)


@pytest.mark.long
@pytest.mark.nightly
def test_clips_of_different_real_films_are_not_alike(real_clips, store_of_real_clips):
    """Clips of 5 s of five films, named FILM@FRAME; 390 pairs or more are of two films."""
    film_of_clip = [film_of(name) for name in real_clips]
    pairs_of_two_films = [pair for pair in combinations(film_of_clip, 2) if pair[0] != pair[1]]
    assert len(pairs_of_two_films) >= 390

    assert duplicates(store_of_real_clips).clips == ()


def changed_copy(folder, frames, change):
    """Make a changed copy of a real clip."""
    clip = frames[:LENGTH]
    if change == "codec":
        return recoded(folder, clip, "libx264", crf="35", preset="veryfast")
    if change == "later":
        return frames[2:]
    if change == "PAL":
        return clip[: LENGTH * 24 // 25]
    return recoded(folder, CHANGES[change](clip), "libx264", crf="23", preset="veryfast")


@pytest.mark.long
@pytest.mark.nightly
@pytest.mark.parametrize("change", [*CHANGES, "codec", "later", "PAL"])
def test_nine_of_ten_copies_of_real_clips_are_found(tmp_path, real_clips, store_of_real_clips, change):
    """Each clip of three films (REAL) is changed and encoded anew, and at least 90 % of the copies are found.

    The clip that begins at a frame of a film is called FILM@FRAME, and its copy FILM@FRAME+. Changes are
    those of CHANGES, a strong compression ("codec"), a start of .2 s later, and "PAL": the clip has only the
    first 24 of 25 frames, as of a film that is played at 24 frames a second in place of 25.

    No clips of two films may be found to be alike. The limits of likeness in the code were chosen on two
    other films.
    """
    copies = {}
    for name, frames in real_clips.items():
        if film_of(name) in REAL:
            copies[f"{name}+"] = changed_copy(tmp_path, frames, change)

    result = duplicates(store_of_real_clips, store_of(tmp_path / "copies", copies))

    sets_of_names = sets_of_alike_clips(result)
    n_found = 0
    for copy in copies:
        original = copy.removesuffix("+")
        if any({copy, original} <= names for names in sets_of_names):
            n_found += 1
    assert n_found >= 0.9 * len(copies)
    for names in sets_of_names:
        films = {film_of(name) for name in names}
        assert len(films) == 1


def recoded(folder, frames, codec, **options):
    """Encode frames and decode them again."""
    even = [np.ascontiguousarray(frame[: len(frame) // 2 * 2, : frame.shape[1] // 2 * 2]) for frame in frames]
    path = encoding.encode(folder / "copy.mkv", even, codec, rate=10, options=options)
    with av.open(str(path)) as film:
        return np.array([frame.to_ndarray(format="rgb24") for frame in film.decode(video=0)])


def letterboxed_clip(n_shown, contrast_of_borders, line_axis):
    """Four frames of 40 lines of 60 pixels: of lines in the middle, `n_shown` have strong stripes.

    The others are borders, with stripes of that contrast. Lines run along an axis: 2 of rows, 1 of columns.
    """
    stripes = np.arange(60) % 2
    clip = np.tile((contrast_of_borders * stripes).astype(np.uint8), (4, 40, 1))  # [frames, lines, pixels]
    first = (40 - n_shown) // 2
    clip[:, first : first + n_shown] = 200 * stripes
    return clip.transpose(0, 2, 1) if line_axis == 1 else clip


@pytest.mark.parametrize(
    ("contrast_of_borders", "n_shown", "expected"),
    [
        pytest.param(0, 30, (6, 34), id="lines 5 to 34, but those next to a border, which are mixtures"),
        pytest.param(FLAT, 30, (6, 34), id="borders that are just flat"),
        pytest.param(FLAT + 1, 30, (0, 40), id="no borders, as they are not flat"),
        pytest.param(0, 16, (13, 27), id="two fifths of the lines"),
        pytest.param(0, 15, (0, 40), id="too few lines to be the picture"),
        pytest.param(0, 40, (0, 40), id="all lines"),
        pytest.param(0, 0, (0, 40), id="dark"),
    ],
)
@pytest.mark.parametrize("line_axis", [2, 1])
def test_a_picture_lies_between_borders_whose_lines_are_flat(
    contrast_of_borders, n_shown, expected, line_axis
):
    """A clip has 40 lines, of which so many in the middle show something; the others are borders.

    A copy of a film with black borders (letterboxed) is known by the lines between them. Borders may be a
    little noisy, with a contrast of up to FLAT.
    """
    clip = letterboxed_clip(n_shown, contrast_of_borders, line_axis)

    assert lines_between_borders(clip, line_axis) == expected
