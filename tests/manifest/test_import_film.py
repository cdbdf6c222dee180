"""Films become windows of one length that cover them; what is odd about a film is said."""

import json
import math
import zipfile
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
from obygaze_features.manifest.importers.imported import Imported
from obygaze_features.store.records import ClipFeatures, ClipResult, PlannedClip
from obygaze_features.store.sealing import seal
from obygaze_features.store.stage import Stage
from obygaze_features.store.testing import seal_arrays, toy_group
from obygaze_features.video import frame_times, read_frames, uniform
from obygaze_features.video.sampling import FrameTimes
from tests.files import written

ROOT = Path("/corpus")


def windows_of(end_s: float, window_s: float, hop_s: float | None = None) -> list[tuple[float, float]]:
    """Return the start and end of each window of a film of `end_s` seconds."""
    clips = import_film([Film(ROOT / "a.mkv", end_s)], ROOT, window_s, hop_s).manifest.clips
    return [(clip.start_s, clip.end_s) for clip in clips]


def test_windows_begin_one_hop_after_each_other():
    """The film is 30 s long. Its windows are of 10 s, and one begins every 5 s."""
    windows = windows_of(end_s=30.0, window_s=10.0, hop_s=5.0)
    assert windows == [(0, 10), (5, 15), (10, 20), (15, 25), (20, 30)]


def test_the_last_window_is_moved_back_to_end_with_the_film():
    """From 30 s on, 2.5 s of the film are left, which are less than a window."""
    windows = windows_of(end_s=32.5, window_s=10.0, hop_s=10.0)
    assert windows == [(0, 10), (10, 20), (20, 30), (22.5, 32.5)]


@pytest.mark.parametrize("end_s", [7.0, 10.0], ids=["shorter", "as long"])
def test_a_film_that_is_no_longer_than_a_window_is_one_window(end_s):
    """Windows are of 10 s, and one begins every 5 s. The film is of 7 s, or of 10 s."""
    assert windows_of(end_s, window_s=10.0, hop_s=5.0) == [(0, end_s)]


@pytest.mark.parametrize(("window_s", "hop_s"), [(40.0, 10.0), (20.0, 5.0), (8.0, 5.0), (2.0, 2.0)])
def test_the_automatic_hop_is_a_quarter_of_the_window_at_least_5_s(window_s, hop_s):
    """Where no hop is given, windows below 20 s have one of 5 s, but never more than the window itself."""
    first, second, *_ = windows_of(end_s=60.0, window_s=window_s)
    assert first == (0, window_s)
    assert second == (hop_s, hop_s + window_s)


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
    """The lengths are of the film, of its windows, and from one window to the next."""
    with pytest.raises(ManifestError, match=message):
        windows_of(film_s, window_s, hop_s)


@pytest.mark.parametrize(
    "second_file",
    [
        pytest.param("b/Birds.mkv", id="another suffix"),
        pytest.param("b/birds.mp4", id="a small letter"),
        pytest.param("b/B\u0131rds.mp4", id="an i without a dot, which looks alike"),
    ],
)
def test_two_files_that_would_be_one_movie_are_refused_by_their_paths(second_file):
    """A movie is named by its file, and two names that are alike but for case or looks are one movie.

    Birds.mp4 and a file of such a name in another folder would be one film in two. Elsewhere a message names
    the clips of both; here there are none yet, so it names the files. These need not exist for that.
    """
    films = [Film(ROOT / "Birds.mp4", end_s=10.0), Film(ROOT / second_file, end_s=10.0)]

    with pytest.raises(ManifestError) as refusal:
        import_film(films, ROOT, window_s=5.0)

    assert str(refusal.value) == (
        f"{ROOT / 'Birds.mp4'} and {ROOT / second_file}: both would be movie 'Birds'; rename one, or leave "
        "one out"
    )


def import_scenes(*times: tuple[float, float]) -> Imported:
    """Import a film of 10 s, divided into scenes of these times."""
    scenes = [FilmPart(start_s, end_s) for start_s, end_s in times]
    return import_film([Film(ROOT / "a.mkv", end_s=10.0)], ROOT, scenes={"a": scenes})


@pytest.mark.parametrize(
    ("times_of_scenes", "remainder_s"),
    [([(0, 4), (4, 9)], 1.0), ([], 10.0), ([(0, 12)], 0.0)],
    ids=["scenes that end before the film", "no scene", "a scene that ends after the film"],
)
def test_the_time_of_a_film_outside_of_its_scenes_is_counted_as_the_remainder(times_of_scenes, remainder_s):
    """The film is 10 s long, and `times_of_scenes` are the starts and ends of its scenes in seconds."""
    imported = import_scenes(*times_of_scenes)
    assert imported.remainder_s == {"a": remainder_s}


def test_a_scene_that_ends_after_its_film_is_reported():
    """The film is 10 s long. Its only scene lasts from 0 to 12 s."""
    imported = import_scenes((0, 12))
    assert "a.mkv: its last scene ends at 12 s, the film at 10.0 s (another cut?)" in imported.notices


def test_scenes_within_their_film_need_no_notice():
    """The film is 10 s long. Its scenes last from 0 to 4 s, and from 4 to 9 s."""
    imported = import_scenes((0, 4), (4, 9))
    assert not any("its last scene ends" in notice for notice in imported.notices)


def test_a_scene_that_begins_after_its_film_is_refused():
    """The film is 10 s long. The second scene begins at 10 s: the scenes are of another cut of the film."""
    with pytest.raises(ManifestError, match="another cut"):
        import_scenes((0, 4), (10, 12))


@given(
    film_s=st.floats(min_value=0.5, max_value=300),
    window_s=st.floats(min_value=0.5, max_value=60),
    hop_share=st.floats(min_value=0.05, max_value=1),
)
def test_windows_have_one_length_and_leave_nothing_out(film_s, window_s, hop_share):
    """A film of any length is cut into windows of any length; from one start to the next is a share of it.

    A film that is shorter than a window is one window. Starts and ends are rounded to milliseconds, so that
    lengths may differ by two of them.
    """
    windows = windows_of(film_s, window_s, hop_s=hop_share * window_s)

    starts = np.array([start_s for start_s, _ in windows])
    ends = np.array([end_s for _, end_s in windows])
    assert starts[0] == 0
    assert ends[-1] == pytest.approx(film_s, abs=0.001)
    assert (starts[1:] <= ends[:-1]).all(), "there is no gap between windows"
    both_ends_rounded = 0.0021
    np.testing.assert_allclose(ends - starts, min(window_s, film_s), atol=both_ends_rounded)
    assert len(set(windows)) == len(windows), "no window comes twice"


@pytest.mark.long
@pytest.mark.parametrize("rate", ["24", "29.97"])
@pytest.mark.parametrize("is_rounded", [False, True], ids=["mp4", "mkv"])
def test_windows_of_16_frames_hold_16_frames_each_for_two_hours(rate, is_rounded):
    """A film of two hours is cut into windows of 16 frames, one every 16: the first has frames 0 to 15.

    The files of suffix mkv (Matroska) round the times of frames to milliseconds, those of mp4 do not. Errors
    of rounding must not add up, so the last window too begins with a frame whose number is a multiple of 16.
    """
    frames_per_second = frame_rate(rate)
    two_hours_s = 7200
    n_frames = int(two_hours_s * frames_per_second)
    times_of_frames = np.arange(n_frames) / float(frames_per_second)
    if is_rounded:
        times_of_frames = np.round(times_of_frames, 3)
    end_s = times_of_frames[-1] + 1 / float(frames_per_second)
    film = Film(ROOT / "a.mkv", end_s, damage="", frame_s=times_of_frames)
    length_and_hop = (16, 16)

    windows = import_film([film], ROOT, frames=length_and_hop).manifest.clips

    assert len(windows) == n_frames // 16
    first_frames = np.searchsorted(times_of_frames, [window.start_s for window in windows])
    frames_after = np.searchsorted(times_of_frames, [window.end_s for window in windows])
    assert (first_frames == 16 * np.arange(len(windows))).all()
    assert (frames_after == first_frames + 16).all()


def write_film_of_one_picture(path, rate, n_frames):
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
    """A film of a minute has 23.976 frames a second, a rate at which errors of rounding could add up.

    Each window must have its own 16 frames by the times that the file states for them: the first 0 to 15, the
    second 16 to 31, and so on.
    """
    rate = frame_rate("23.976")
    n_frames = int(60 * rate)
    film = tmp_path / f"film{suffix}"
    write_film_of_one_picture(film, rate, n_frames)

    code, output = import_film_by_command(
        film, "--frames", 16, "--shots", "none", "--out", tmp_path / "windows.csv"
    )

    assert code == 0, output
    times_in_file = FrameTimes(np.arange(n_frames), frame_times(film), key=None)
    windows = read_manifest(tmp_path / "windows.csv").clips
    assert len(windows) == n_frames // 16
    for number, window in enumerate(windows):
        first_frame = 16 * number
        frames = times_in_file.within(window.start_s, window.end_s).index
        assert list(frames) == list(range(first_frame, first_frame + 16))


def test_a_window_is_read_as_its_own_frames(wrestling, tmp_path):
    """A video is cut into windows of 16 frames, and one begins every 8 frames: 0 to 15, 8 to 23, and so on.

    If 16 frames are read between the times of a window, these are its frames. The first five are looked at.
    """
    code, output = import_film_by_command(
        wrestling, "--frames", 16, "--stride", 8, "--shots", "none", "--out", tmp_path / "windows.csv"
    )

    assert code == 0, output
    first_windows = read_manifest(tmp_path / "windows.csv").clips[:5]
    assert len(first_windows) == 5
    for number, window in enumerate(first_windows):
        first_frame = 8 * number
        frames = read_frames(wrestling, uniform(16), start_s=window.start_s, end_s=window.end_s)
        assert list(frames.index) == list(range(first_frame, first_frame + 16))


@pytest.mark.parametrize(
    "times_of_frames",
    [np.arange(15.0), 0.0004 * np.arange(20)],
    ids=["15 frames, fewer than a window has", "20 frames, 0.4 ms apart"],
)
def test_frames_that_cannot_be_counted_are_refused(times_of_frames):
    """Windows shall have 16 frames. Times of a manifest are in milliseconds, so frames must be 1 ms apart."""
    film = Film(ROOT / "a.mkv", end_s=20.0, damage="", frame_s=times_of_frames)
    with pytest.raises(ManifestError, match=r"a\.mkv"):
        import_film([film], ROOT, frames=(16, 16))


def test_frames_left_over_at_the_end_are_reported():
    """50 frames at 25 a second are three windows of 16, and 2 frames are left over.

    The first frame is shown at 0.04 s. A window ends between its last frame and the next, so the first ends
    between 0.64 and 0.68 s, at 0.66 s, and each further one 16 / 25 = 0.64 s later.
    """
    times_of_frames = np.arange(1, 51) / 25
    film = Film(ROOT / "a.mkv", end_s=2.04, damage="", frame_s=times_of_frames)

    imported = import_film([film], ROOT, frames=(16, 16))

    assert imported.notices == ("a.mkv: 3 windows of 16 frames every 16; the last 2 frames fill no window",)
    assert [(clip.start_s, clip.end_s) for clip in imported.manifest] == [
        (0.04, 0.66),
        (0.66, 1.3),
        (1.3, 1.94),
    ]


@pytest.mark.parametrize("option", ["--stride", "--frames"])
def test_windows_of_frames_and_of_seconds_exclude_each_other(tmp_path, option):
    """--window 2 asks for windows of 2 s, and --frames 3 and --stride 3 count frames. Both is wrong.

    A wrong use of options ends with code 2.
    """
    exit_code, _ = import_film_by_command(
        tmp_path / "a.mkv", option, 3, "--window", 2, "--out", tmp_path / "w.csv"
    )
    assert exit_code == 2


def test_clips_are_named_by_film_and_number_and_point_to_the_file():
    """a.mkv, of 12 s, has two windows of 6 s, and b.mp4, of 4 s, is one clip."""
    films = [Film(ROOT / "films" / "a.mkv", end_s=12.0), Film(ROOT / "b.mp4", end_s=4.0)]

    imported = import_film(films, ROOT, window_s=6.0, hop_s=6.0)

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
    """The film a.mkv of 12 s is cut into windows of 2 s every 6 s: 0 to 2 s and 6 to 8 s, with 4 s between.

    Or it is cut into two windows of 5 s, one after the other, and the last 2 s are left over. The other film,
    b.mp4, is too short for a second window.
    """
    film_of_12_s = Film(ROOT / "films" / "a.mkv", end_s=12.0)
    film_of_4_s = Film(ROOT / "b.mp4", end_s=4.0, damage="the file is cut off: 3 of 9")

    notices = import_film([film_of_12_s, film_of_4_s], ROOT, window_s, hop_s).notices

    assert any(notice in text for text in notices)


def ids_of_half_seconds(n_clips: int) -> list[str]:
    """Import a film in this number of windows of half a second, and return the ids of the clips."""
    film = Film(ROOT / "a.mkv", 0.5 * n_clips)
    clips = import_film([film], ROOT, window_s=0.5, hop_s=0.5).manifest.clips
    return [clip.clip_id for clip in clips]


@pytest.mark.long
def test_ids_of_up_to_9999_windows_have_four_digits():
    """The film is cut into 9999 windows of half a second."""
    ids = ids_of_half_seconds(n_clips=9_999)
    assert (ids[0], ids[-1]) == ("a-0001", "a-9999")


@pytest.mark.long
def test_ids_of_more_windows_have_five_digits_so_that_they_sort_in_time():
    """The film is cut into 10,000 windows of half a second."""
    ids = ids_of_half_seconds(n_clips=10_000)
    assert (ids[0], ids[-1]) == ("a-00001", "a-10000")
    assert sorted(ids) == ids


def model_file(path: Path, **card: object) -> Path:
    """Write a file of a model of which there is nothing but its card."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("card.json", json.dumps(card))
    return path


def import_film_by_command(*words: object) -> tuple[int, str]:
    """Run `obygaze manifest import film` with these words, and return its exit code and what it prints."""
    result = CliRunner().invoke(root_command(), ["manifest", "import", "film", *map(str, words)])
    return result.exit_code, f"{result.output}{result.exception or ''}"


@pytest.fixture
def wrestling(shared_data) -> Path:
    """The path of a video of 10 s."""
    return shared_data / "videos" / "arm_wrestling.mp4"


@pytest.mark.parametrize(
    "card",
    [{}, {"clip_s": "46"}, {"clip_s": -1}, {"clip_s": True}],
    ids=["no length", "a text", "less than nothing", "a truth value"],
)
def test_a_card_that_states_no_length_of_clips_is_refused(tmp_path, card):
    """The card in a model's file says how long its training clips were, in seconds."""
    with pytest.raises(ManifestError):
        window_of_model(model_file(tmp_path / "b.model", **card))


def test_the_window_of_a_model_cannot_be_read_from_a_file_that_is_no_model(tmp_path):
    """Films are cut into windows of the length that a model is for, which its file says.

    That file is a zip archive with a card. This one is a text.
    """
    with pytest.raises(ManifestError):
        window_of_model(written(tmp_path / "c.model", "no zip"))


def test_the_window_of_a_model_whose_file_is_not_there_is_refused(tmp_path):
    """Somebody names the file of a model in a folder that is empty."""
    with pytest.raises(ManifestError, match="cannot be read"):
        window_of_model(tmp_path / "none.model")


def store_of_three_clips(folder: Path, **spans: tuple[float, float]) -> Path:
    """Write a store of the clips x, y and z of a film, with these spans or as whole files."""
    rows = {"pooled": np.zeros((3, 2), np.float32)}
    return seal_arrays(folder, dict.fromkeys("xyz", "m"), {"d": rows}, spans=spans or None)


def test_a_window_may_be_as_long_as_the_training_clips_of_a_model(wrestling, tmp_path):
    """The card in the model's file says that they were 4.25 s long. The film is a video of arm wrestling."""
    model = model_file(tmp_path / "a.model", clip_s=4.25)

    code, output = import_film_by_command(
        wrestling, "--model", model, "--shots", "none", "--out", tmp_path / "windows.csv"
    )

    assert code == 0
    assert "windows of 4.25 s every 4.25 s" in output


def test_a_window_may_be_as_long_as_the_median_clip_of_a_store(wrestling, tmp_path):
    """The clips of a store are 3, 5 and 6 s long. A film is cut into windows as long as their median, 5 s."""
    store = store_of_three_clips(tmp_path / "s", x=(0.0, 3.0), y=(1.0, 6.0), z=(2.0, 8.0))

    code, output = import_film_by_command(
        wrestling, "--window", "train", "--store", store, "--shots", "none", "--out", tmp_path / "windows.csv"
    )

    assert code == 0
    assert "windows of 5 s every 5 s" in output


def store_of_a_clip_of_5_s_and_one_that_is_missing(folder: Path) -> Path:
    """Write a store of the clip x of 5 s. Clip y was planned as a whole file, and nobody computed it."""
    values = np.zeros((1, 2), np.float32)
    stage_folder = folder / "s.staging"
    stage = Stage.open(
        stage_folder,
        [PlannedClip("x", "m", start_s=0, end_s=5), PlannedClip("y", "m")],
        [toy_group("d", {"pooled": values})],
        {"name": "toy"},
    )
    features = ClipFeatures(np.arange(2.0), np.arange(2), {"pooled": values[0]})
    with stage.writer() as writer:
        writer.commit([ClipResult("x", "ok", groups={"d": features})])
    return seal(stage_folder, folder / "s", licence="CC0-1.0", allow_missing=True)


def test_a_clip_that_a_store_lacks_has_no_part_in_the_length_of_windows(wrestling, tmp_path):
    """Windows become as long as the median clip of a store. Its clip x is 5 s long.

    Its clip y was planned as a whole file, whose length nobody knows, and has no features: x alone counts.
    """
    store = store_of_a_clip_of_5_s_and_one_that_is_missing(tmp_path)

    code, output = import_film_by_command(
        wrestling, "--store", store, "--shots", "none", "--out", tmp_path / "windows.csv"
    )

    assert code == 0
    assert "windows of 5 s every 5 s" in output


def test_a_store_of_whole_files_gives_no_length_of_windows(wrestling, tmp_path):
    """Windows shall be as long as the clips of a store. Its clips are whole files, which have no times."""
    store = store_of_three_clips(tmp_path / "w")

    code, _ = import_film_by_command(
        wrestling, "--store", store, "--shots", "none", "--out", tmp_path / "windows.csv"
    )

    assert code != 0


@pytest.fixture
def table_of_one_shot(tmp_path) -> Path:
    """The path of a table with a shot from 0 to 3.5 s, which is black and has bars."""
    return written(tmp_path / "shots.csv", "start_s,end_s,flags\n0,3.5,black;bars\n")


@pytest.fixture
def empty_folder(tmp_path) -> Path:
    """The folder `out`, with nothing in it."""
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def test_shots_are_written_with_their_manifest(wrestling, table_of_one_shot, empty_folder):
    """The film arm_wrestling is imported with shots.csv, whose one shot, 0 to 3.5 s, is black and has bars.

    Beside the manifest of its windows of 4 s stands a table of its shots, by the manifest's name.
    """
    code, _ = import_film_by_command(
        wrestling, "--window", 4, "--shots", table_of_one_shot, "--out", empty_folder / "films.csv"
    )

    assert code == 0
    assert {path.name for path in empty_folder.iterdir()} == {"films.csv", "films.shots.csv"}
    assert read_parts(empty_folder / "films.shots.csv") == {
        "arm_wrestling": [FilmPart(start_s=0.0, end_s=3.5, flags=("black", "bars"), detector="shots.csv")]
    }


def let_the_disk_be_full_for_manifests(monkeypatch) -> None:
    """Raise the error of a full disk where a manifest, which has a column clip_id, is written."""
    write = io._fill

    def refuse_manifest(path, data):
        if b"clip_id" in data:
            raise OSError(28, "No space left on device", str(path))
        write(path, data)

    monkeypatch.setattr(io, "_fill", refuse_manifest)


def test_no_shots_are_written_if_the_manifest_cannot_be(
    wrestling, table_of_one_shot, empty_folder, monkeypatch
):
    """A film shall be imported with a table of its shots: two files, a table of shots and a manifest.

    The table can be written, and then the disk is full for the manifest. A table of shots without its
    manifest would be in the way, so the folder stays empty.
    """
    let_the_disk_be_full_for_manifests(monkeypatch)

    _, output = import_film_by_command(
        wrestling, "--window", 4, "--shots", table_of_one_shot, "--out", empty_folder / "films.csv"
    )

    assert "No space left" in output
    assert not any(empty_folder.iterdir())


def test_a_manifest_that_is_named_as_a_table_of_shots_is_refused(wrestling, table_of_one_shot, empty_folder):
    """Names that end in .shots.csv are for tables of shots, which are written beside manifests."""
    manifest = empty_folder / "films.shots.csv"

    code, _ = import_film_by_command(
        wrestling, "--window", 4, "--shots", table_of_one_shot, "--out", manifest, "--force"
    )

    assert code == 2


def test_scenes_become_clips(wrestling, tmp_path):
    """The table has semicolons and decimal commas. The film of 10 s goes on after the last scene, at 8 s."""
    scenes = written(tmp_path / "scenes.csv", "start_s;end_s;who\n0:00;3,5;A\n3,5;0:08;B\n")
    manifest = tmp_path / "scenes-of-film.csv"

    code, output = import_film_by_command(wrestling, "--scenes", scenes, "--shots", "none", "--out", manifest)

    assert code == 0
    assert [(clip.clip_id, clip.start_s, clip.end_s) for clip in read_manifest(manifest)] == [
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
def test_a_broken_table_of_shots_or_scenes_is_refused_by_line(tmp_path, films, text, message):
    """`films` are the films that the table is of, or None where it names them. Line 1 is the heading."""
    path = written(tmp_path / "parts.csv", text)
    with pytest.raises(ManifestError) as refusal:
        read_parts(path, films)
    assert message in str(refusal.value)


def test_films_of_a_table_of_scenes_are_in_the_order_of_their_first_rows(tmp_path):
    """The table has a scene of film a, one of film b, and another one of a."""
    path = written(tmp_path / "parts.csv", "movie,start_s,end_s\na,0,2\nb,0,2\na,2,3\n")

    assert list(read_parts(path)) == ["a", "b"]


def test_the_later_of_two_spellings_of_a_film_in_a_table_of_scenes_is_named_as_the_wrong_one(tmp_path):
    """The film is `a` on line 2 and `A` on line 3."""
    path = written(tmp_path / "parts.csv", "movie,start_s,end_s\na,0,2\nA,2,3\n")

    with pytest.raises(ManifestError, match=r"line 3: movie 'A' and 'a' \(line 2\) are one name"):
        read_parts(path)


@pytest.mark.parametrize("with_cuts", [True, False], ids=["with a row of cuts above", "scenes alone"])
def test_the_list_of_scenes_that_pyscenedetect_writes_is_read(tmp_path, with_cuts):
    """PySceneDetect, a program that finds cuts, writes a table of the scenes of a film.

    At 25 frames a second, the first scene has the frames 0 to 49, which are 2 s, and the second 50 to 129, up
    to 130 / 25 = 5.2 s. The program may write a row with all cuts above the table.
    """
    from scenedetect import FrameTimecode
    from scenedetect.output import write_scene_list

    start = FrameTimecode(0, fps=25.0)
    cut = FrameTimecode(50, fps=25.0)
    end = FrameTimecode(130, fps=25.0)
    table = tmp_path / "film-Scenes.csv"
    with table.open("w") as file:
        write_scene_list(file, [(start, cut), (cut, end)], include_cut_list=with_cuts)

    (scenes,) = read_parts(table, ["film"]).values()

    assert [(scene.start_s, scene.end_s) for scene in scenes] == [(0.0, 2.0), (2.0, 5.2)]


@pytest.mark.parametrize("other_spelling", ["TT0000042 ", "42", "films/tt0000042.mkv"])
def test_scenes_of_a_film_are_read_however_its_name_is_spelled(tmp_path, other_spelling):
    """The first row names the film tt0000042, and the second in other capitals, as a number or as a path."""
    path = written(tmp_path / "parts.csv", f"movie,start_s,end_s\ntt0000042,0,2\n{other_spelling},2,3\n")

    (scenes,) = read_parts(path, ["tt0000042"]).values()

    assert [(scene.start_s, scene.end_s) for scene in scenes] == [(0.0, 2.0), (2.0, 3.0)]
