"""Films become windows of one length that cover them; what is odd about a film is said."""

import json
import math
import zipfile
from itertools import pairwise
from pathlib import Path

import av
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from obygaze.cli import root_command
from obygaze_features import io
from obygaze_features.errors import ManifestError
from obygaze_features.manifest import (
    Film,
    FilmPart,
    frame_rate,
    import_film,
    read_manifest,
    read_parts,
    window_of_model,
)
from obygaze_features.manifest.importers.film_windows import automatic_hop
from obygaze_features.manifest.importers.imported import Imported
from obygaze_features.store.testing import seal_arrays
from obygaze_features.video import frame_times, read_frames, uniform
from obygaze_features.video.sampling import FrameTimes
from tests.files import written

ROOT = Path("/corpus")


def windows_of(end_s: float, window_s: float, hop_s: float | None = None) -> list[tuple[float, float]]:
    """Return the start and end of each window of a film of `end_s` seconds."""
    clips = import_film([Film(ROOT / "a.mkv", end_s)], ROOT, window_s, hop_s).manifest.clips
    return [(clip.start_s, clip.end_s) for clip in clips]


def test_windows_follow_each_other_and_the_last_ends_with_the_film():
    """The last window is moved back to end with the film. A film shorter than a window is one clip."""
    assert windows_of(30.0, 10.0, 5.0) == [(0, 10), (5, 15), (10, 20), (15, 25), (20, 30)]
    assert windows_of(32.5, 10.0, 10.0) == [(0, 10), (10, 20), (20, 30), (22.5, 32.5)]
    assert windows_of(7.0, 10.0, 5.0) == [(0, 7)]
    assert windows_of(10.0, 10.0, 5.0) == [(0, 10)]


def test_the_automatic_hop_is_a_quarter_of_the_window_at_least_5_s():
    """A quarter of 46 s is 11.5 s, and of 20 s it is 5 s.

    Shorter windows have 5 s, but never more than the window itself.
    """
    assert [automatic_hop(window) for window in (46.0, 20.0, 8.0, 2.0)] == [11.5, 5.0, 5.0, 2.0]
    assert windows_of(60.0, 40.0) == [(0, 40), (10, 50), (20, 60)]


@pytest.mark.parametrize(
    ("film_s", "window_s", "hop_s", "message"),
    [
        (20.0, None, None, "window 0"),
        (20.0, 0.0, None, "window 0"),
        (20.0, 5.0, math.inf, "hop inf"),
        (math.nan, 5.0, None, "when its pictures are shown"),
    ],
    ids=["no window", "a window of 0 s", "an endless hop", "a still image, which has no length"],
)
def test_a_length_that_is_missing_zero_or_infinite_is_refused(film_s, window_s, hop_s, message):
    with pytest.raises(ManifestError, match=message):
        windows_of(film_s, window_s, hop_s)


def import_scenes(*times: tuple[float, float]) -> Imported:
    """Import a film of 10 s, divided into scenes of these times."""
    scenes = [FilmPart(start_s, end_s) for start_s, end_s in times]
    return import_film([Film(ROOT / "a.mkv", 10.0)], ROOT, scenes={"a": scenes})


@pytest.mark.parametrize(
    ("times", "remainder_s", "is_too_long"),
    [([(0, 4), (4, 9)], 1.0, False), ([], 10.0, False), ([(0, 12)], 0.0, True)],
    ids=["scenes that end before the film", "no scene", "a scene that ends after the film"],
)
def test_what_lies_outside_of_scenes_is_the_remainder(times, remainder_s, is_too_long):
    """The film is 10 s long."""
    imported = import_scenes(*times)
    assert imported.remainder_s == {"a": remainder_s}
    assert any("its last scene ends at 12 s" in notice for notice in imported.notices) == is_too_long


def test_a_scene_that_begins_after_its_film_is_refused():
    """The second scene begins at 10 s, where the film ends: the scenes are of another cut of the film."""
    with pytest.raises(ManifestError, match="another cut"):
        import_scenes((0, 4), (10, 12))


@given(st.floats(0.5, 300), st.floats(0.5, 60), st.floats(0.05, 1))
def test_windows_have_one_length_and_leave_nothing_out(end_s, window_s, share):
    """A film that is shorter than a window is one window. Times are rounded to milliseconds."""
    windows = np.array(windows_of(end_s, window_s, hop_s=window_s * share))  # [windows, start and end]
    starts, ends = windows.T
    assert starts[0] == 0
    assert ends[-1] == pytest.approx(end_s, abs=0.001)
    assert (starts[1:] <= ends[:-1]).all()
    both_ends_rounded = 0.0021
    np.testing.assert_allclose(ends - starts, min(window_s, end_s), atol=both_ends_rounded)

    assert len(np.unique(windows, axis=0)) == len(windows)


RATES = {rate: frame_rate(rate) for rate in ("24", "23.976", "25", "29.97")}


@pytest.mark.long
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("is_rounded", [False, True], ids=["mp4", "mkv"])
def test_windows_of_16_frames_hold_16_frames_each_for_two_hours(rate, is_rounded):
    """Matroska rounds the times of frames to milliseconds."""
    per_second = float(RATES[rate])
    times = np.arange(int(7200 * RATES[rate])) / per_second  # [frames] when each is shown
    if is_rounded:
        times = np.round(times, 3)
    film = Film(ROOT / "a.mkv", times[-1] + 1 / per_second, "", times)
    clips = import_film([film], ROOT, frames=(16, 16)).manifest.clips
    first_frames = np.searchsorted(times, [clip.start_s for clip in clips])
    frames_after = np.searchsorted(times, [clip.end_s for clip in clips])

    assert len(clips) == len(times) // 16
    assert (first_frames == 16 * np.arange(len(clips))).all()
    assert (frames_after == first_frames + 16).all()


def write_still(path, rate, n_frames):
    """Write a film of one picture, which is encoded once and shown at every frame's time."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mjpeg", rate=rate)
        stream.width = 16
        stream.height = 16
        stream.pix_fmt = "yuvj420p"
        (picture,) = stream.encode(av.VideoFrame(16, 16, "yuvj420p"))
        data = bytes(picture)
        for number in range(n_frames):
            packet = av.Packet(data)
            packet.stream = stream
            packet.time_base = 1 / rate
            packet.pts = packet.dts = number
            packet.is_keyframe = True
            container.mux_one(packet)


@pytest.mark.parametrize("suffix", [".mkv", ".mp4"])
def test_windows_of_a_file_follow_its_own_frame_times(tmp_path, suffix):
    """At 23.976 frames a second rounding errors add up over a minute.

    Each window must still have its own 16 frames.
    """
    rate = RATES["23.976"]
    path = tmp_path / f"film{suffix}"
    n_frames = int(60 * rate)
    write_still(path, rate, n_frames)
    code, output = run(path, "--frames", 16, "--shots", "none", "--out", tmp_path / "windows.csv")
    assert code == 0, output
    times = FrameTimes(np.arange(n_frames), frame_times(path), None)
    clips = read_manifest(tmp_path / "windows.csv").clips
    frames_of_clips = [times.within(clip.start_s, clip.end_s).index for clip in clips]

    assert {len(frames) for frames in frames_of_clips} == {16}
    assert (np.concatenate(frames_of_clips) == np.arange(n_frames // 16 * 16)).all()


def test_a_window_is_read_as_its_own_frames(wrestling, tmp_path):
    """Windows of 16 frames every 8: window k has the frames from 8 k to 8 k + 15."""
    code, output = run(
        wrestling, "--frames", 16, "--stride", 8, "--shots", "none", "--out", tmp_path / "w.csv"
    )
    assert code == 0, output
    spans = [(clip.start_s, clip.end_s) for clip in read_manifest(tmp_path / "w.csv")]
    for number, (start, end) in enumerate(spans[:5]):
        frames = read_frames(wrestling, uniform(16), start_s=start, end_s=end)
        assert list(frames.index) == list(range(8 * number, 8 * number + 16))


@pytest.mark.parametrize(
    "shown", [np.arange(15.0), 0.0004 * np.arange(20)], ids=["fewer than a window has", "closer than 1 ms"]
)
def test_frames_that_cannot_be_counted_are_refused(shown):
    with pytest.raises(ManifestError, match=r"a\.mkv"):
        import_film([Film(ROOT / "a.mkv", 20.0, "", shown)], ROOT, frames=(16, 16))


def test_frames_left_over_at_the_end_are_reported():
    """50 frames at 25 a second are three windows of 16, and 2 frames are left over.

    The first frame is shown at 0.04 s, so each window starts there and 16 / 25 = 0.64 s later; times fall
    between two frames.
    """
    fifty_frames = np.arange(1, 51) / 25
    film = Film(ROOT / "a.mkv", 2.04, "", fifty_frames)
    imported = import_film([film], ROOT, frames=(16, 16))

    assert imported.notices == ("a.mkv: 3 windows of 16 frames every 16; the last 2 frames fill no window",)
    assert [(clip.start_s, clip.end_s) for clip in imported.manifest] == [
        (0.04, 0.66),
        (0.66, 1.3),
        (1.3, 1.94),
    ]


@pytest.mark.parametrize("option", ["--stride", "--frames"])
def test_windows_of_frames_and_of_seconds_exclude_each_other(tmp_path, option):
    code, _ = run(tmp_path / "a.mkv", option, 3, "--window", 2, "--out", tmp_path / "w.csv")
    assert code == 2


TWELVE_SECONDS = Film(ROOT / "films" / "a.mkv", 12.0)
CUT_OFF_AT_4_S = Film(ROOT / "b.mp4", 4.0, "the file is cut off: 3 of 9")


def test_clips_are_named_by_film_and_number_and_point_to_the_file():
    imported = import_film([TWELVE_SECONDS, CUT_OFF_AT_4_S], ROOT, 6.0, 6.0)
    assert [(clip.clip_id, clip.movie, clip.video) for clip in imported.manifest] == [
        ("a-0001", "a", "films/a.mkv"),
        ("a-0002", "a", "films/a.mkv"),
        ("b-0001", "b", "b.mp4"),
    ]


@pytest.mark.parametrize(
    ("window_s", "hop_s", "notice"),
    [
        (2.0, 6.0, "left out 4 s between windows"),
        (5.0, 5.0, "a.mkv: the last 2 s fill no window; "),
    ],
    ids=["between windows", "at the end"],
)
def test_seconds_that_no_window_has_are_reported(window_s, hop_s, notice):
    """The film of 12 s is windows of 2 s every 6 s, or two of 5 s with 2 s left over."""
    notices = import_film([TWELVE_SECONDS, CUT_OFF_AT_4_S], ROOT, window_s, hop_s).notices
    assert any(notice in text for text in notices)


@pytest.mark.long
def test_ids_are_as_wide_as_their_count_and_sort_in_time():
    """Up to 9,999 clips have four digits and more have five, so that sorting by name is sorting by time."""

    def ids(count: int) -> list[str]:
        clips = import_film([Film(ROOT / "a.mkv", 0.5 * count)], ROOT, 0.5, 0.5).manifest.clips
        return [clip.clip_id for clip in clips]

    assert [ids(9_999)[0], ids(9_999)[-1]] == ["a-0001", "a-9999"]
    assert [ids(10_800)[0], ids(10_800)[-1]] == ["a-00001", "a-10800"]
    assert sorted(ids(10_800)) == ids(10_800)
    scenes = {"a": [FilmPart(0.5 * number, 0.5 * number + 0.5) for number in range(10_001)]}
    clips = import_film([Film(ROOT / "a.mkv", 6000.0)], ROOT, scenes=scenes).manifest.clips
    assert len({clip.clip_id for clip in clips}) == 10_001
    assert clips == tuple(sorted(clips, key=lambda clip: clip.clip_id))


def model_file(path: Path, **card: object) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("card.json", json.dumps(card))
    return path


def run(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(root_command(), ["manifest", "import", "film", *map(str, words)])
    return result.exit_code, f"{result.output}{result.exception or ''}"


@pytest.fixture
def wrestling(shared_data) -> Path:
    return shared_data / "videos" / "arm_wrestling.mp4"


def test_the_window_of_a_model_is_the_length_of_its_training_clips(tmp_path):
    assert window_of_model(model_file(tmp_path / "a.model", clip_s=46.25)) == 46.25
    for card in ({}, {"clip_s": "46"}, {"clip_s": -1}, {"clip_s": True}):
        with pytest.raises(ManifestError):
            window_of_model(model_file(tmp_path / "b.model", **card))
    with pytest.raises(ManifestError):
        window_of_model(written(tmp_path / "c.model", "no zip"))
    with pytest.raises(ManifestError, match="cannot be read"):
        window_of_model(tmp_path / "none.model")


def three_clips_in_a_store(folder: Path, **spans: tuple[float, float]) -> Path:
    """Write a store of the clips x, y and z of a film, with these spans or as whole files."""
    rows = {"pooled": np.zeros((3, 2), np.float32)}
    return seal_arrays(folder, dict.fromkeys("xyz", "m"), {"d": rows}, spans=spans or None)


def test_a_window_is_taken_from_a_model_or_is_the_median_length_of_a_stores_clips(wrestling, tmp_path):
    """The model's training clips are 4 s long, and the store's clips 3, 5 and 6 s."""
    model = model_file(tmp_path / "a.model", clip_s=4.0)
    store = three_clips_in_a_store(tmp_path / "s", x=(0.0, 3.0), y=(1.0, 6.0), z=(2.0, 8.0))
    whole_files = three_clips_in_a_store(tmp_path / "w")
    more = ["--shots", "none", "--force", "--out", tmp_path / "windows.csv"]

    code, output = run(wrestling, "--model", model, *more)
    assert code == 0
    assert "windows of 4 s every 4 s" in output
    code, output = run(wrestling, "--window", "train", "--store", store, *more)
    assert code == 0
    assert "windows of 5 s every 5 s" in output
    code, _ = run(wrestling, "--store", whole_files, *more)
    assert code != 0


@pytest.fixture
def import_with_shots(wrestling, tmp_path) -> list[object]:
    """Return the command's words but --out: import a film in windows of 4 s, with a table of one shot."""
    shots = written(tmp_path / "shots.csv", "start_s,end_s,flags\n0,3.5,black;bars\n")
    (tmp_path / "out").mkdir()
    return [wrestling, "--window", 4, "--shots", shots]


def test_shots_are_written_with_their_manifest(import_with_shots, tmp_path):
    assert run(*import_with_shots, "--out", tmp_path / "out" / "films.csv")[0] == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"films.csv", "films.shots.csv"}
    assert read_parts(tmp_path / "out" / "films.shots.csv") == {
        "arm_wrestling": [FilmPart(0.0, 3.5, ("black", "bars"), "shots.csv")]
    }


def test_no_shots_are_written_if_the_manifest_cannot_be(import_with_shots, tmp_path, monkeypatch):
    """The disk is full when the manifest is written.

    A table of shots without its manifest would be in the way.
    """
    write = io._fill

    def refuse_manifest(path, data):
        if b"clip_id" in data:
            raise OSError(28, "No space left on device", str(path))
        write(path, data)

    monkeypatch.setattr(io, "_fill", refuse_manifest)
    _, output = run(*import_with_shots, "--out", tmp_path / "out" / "films.csv")
    assert "No space left" in output
    assert not any((tmp_path / "out").iterdir())


def test_a_manifest_that_is_named_as_a_table_of_shots_is_refused(import_with_shots, tmp_path):
    """Names that end in .shots.csv are for tables of shots, which are written beside manifests."""
    assert run(*import_with_shots, "--out", tmp_path / "out" / "films.shots.csv", "--force")[0] == 2


def test_scenes_become_clips(wrestling, tmp_path):
    """The table has semicolons and decimal commas. The film goes on for 2 s after the last scene."""
    scenes = written(tmp_path / "scenes.csv", "start_s;end_s;who\n0:00;3,5;A\n3,5;0:08;B\n")
    out = tmp_path / "scenes-of-film.csv"
    code, output = run(wrestling, "--scenes", scenes, "--shots", "none", "--out", out)
    assert code == 0
    clips = read_manifest(out).clips

    assert [(clip.clip_id, clip.start_s, clip.end_s) for clip in clips] == [
        ("arm_wrestling-0001", 0.0, 3.5),
        ("arm_wrestling-0002", 3.5, 8.0),
    ]
    assert "2 scenes; 2.0 s lie outside of scenes" in output


@pytest.mark.parametrize(
    ("films", "text", "message"),
    [
        (["a"], "start_s,end_s\n2,1\n", "line 2, column start_s"),
        (["a"], "start_s,end_s\n0,2\n1,3\n", "line 3, column start_s: 1 s: the row before ends at 2 s"),
        (["a"], "start_s,end_s\nx,2\n", "line 2, column start_s"),
        (["a"], "start_s,end_s,flags\n0,2,loud\n", "column flags: 'loud': expected black, credits, bars"),
        (["a"], "start_s\n0\n", "end_s"),
        (["a"], "movie,start_s,end_s\nother,0,2\n", "no row of movie 'a'"),
        (None, "movie,start_s,end_s\na,0,2\nb,0,2\n,2,3\n", "line 4, column movie"),
        (None, "movie,start_s,end_s\na,0,2\nb,0,2\nA,2,3\n", "are one name"),
    ],
)
def test_a_broken_table_of_parts_is_refused_by_line(tmp_path, films, text, message):
    """`films` are the films that the table is of, or None where it names them."""
    path = written(tmp_path / "parts.csv", text)
    with pytest.raises(ManifestError) as refusal:
        read_parts(path, films)
    assert message in str(refusal.value)


@pytest.mark.parametrize("with_cuts", [True, False])
def test_pyscenedetects_own_list_of_scenes_is_read(tmp_path, with_cuts):
    from scenedetect import FrameTimecode
    from scenedetect.output import write_scene_list

    times = [FrameTimecode(frame, 25.0) for frame in (0, 50, 130)]
    with (tmp_path / "film-Scenes.csv").open("w") as file:
        write_scene_list(file, [*pairwise(times)], include_cut_list=with_cuts)
    (parts,) = read_parts(tmp_path / "film-Scenes.csv", ["film"]).values()
    assert [(part.start_s, part.end_s) for part in parts] == [(0.0, 2.0), (2.0, 5.2)]


@pytest.mark.parametrize("other", ["TT0000042 ", "42", "films/tt0000042.mkv"])
def test_parts_of_a_film_are_read_however_its_name_is_spelled(tmp_path, other):
    path = written(tmp_path / "parts.csv", f"movie,start_s,end_s\ntt0000042,0,2\n{other},2,3\n")
    (parts,) = read_parts(path, ["tt0000042"]).values()
    assert [part.end_s for part in parts] == [2.0, 3.0]
