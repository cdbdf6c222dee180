"""Many windows of one file in one pass give what each gives alone; seeks and shared facts change nothing."""

from collections import Counter
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from obygaze_features.errors import VideoError
from obygaze_features.video import (
    Frames,
    at,
    file_digest,
    file_facts,
    keyframes,
    read_frames,
    read_windows,
    share_in,
    uniform,
)
from obygaze_features.video import decode as sparse_room
from obygaze_features.video import index as index_room
from obygaze_features.video.index import index_packets
from obygaze_features.video.packet_table import PacketTable
from tests.video.conftest import read_drawn_numbers, remux, spoiled
from tests.video.test_decoding import SPARSE, decoded_by_pyav

FILMS = [
    "pyramid.mp4",
    "open_gop.ts",
    "asp.avi",
    "hevc_cra.mp4",
    "vp9.webm",
    "av1.mkv",
    "mpeg2.vob",
    "h264.avi",
]
FILMS_WITH_SEEKS = [name for name in SPARSE if name.endswith(("mp4", "mkv", "webm", "flv", "mov"))]
FILMS_WITH_SEEKS.remove("refresh.mkv")  # in which decoding can start at few places
"""Films of 100 pictures whose containers find a packet by its time stamp."""
WINDOWS = [(2.0, 3.2), (0.0, 1.6), (0.8, 2.4), (0.8, 2.4), (3.9, 4.0), (None, 0.5), (3.0, 9.0), (50.0, 60.0)]
"""Starts and ends in films of four seconds, in no order: two are the same, and two go over the end."""


def facts(frames: Frames[np.ndarray]) -> dict[str, object]:
    """Everything about frames but what a pass shares out among its windows."""
    return {name: value for name, value in frames.record().items() if name != "decoded"}


def assert_same(result, alone) -> None:
    """Compare what each sampling gives of a window."""
    for mine, its in zip(result, alone, strict=True):
        assert np.array_equal(mine.images, its.images)
        assert np.array_equal(mine.index, its.index)
        assert np.array_equal(mine.time_s, its.time_s)
        assert facts(mine) == facts(its)


def assert_windows_equal_those_read_alone(path: Path, windows, *, strict: bool = False) -> None:
    """Assert that windows read in one pass have the frames, or the error, that each has when read alone."""
    requests = [(uniform(5), lambda frame: frame), (keyframes(2), lambda frame: frame.copy())]
    together = dict(read_windows(path, windows, requests, strict=strict))
    assert sorted(together) == list(range(len(windows)))
    for number, (start, end) in enumerate(windows):
        result = together[number]
        ((_, alone),) = read_windows(path, [(start, end)], requests, strict=strict)
        if isinstance(result, VideoError):
            assert str(alone) == str(result)
        else:
            assert_same(result, alone)


@pytest.mark.parametrize("name", FILMS)
def test_windows_that_are_read_together_have_the_frames_that_each_has_when_read_alone(numbered_films, name):
    """Windows of a film of four seconds, in no order; some overlap, and some go over its end."""
    windows = [
        (2.0, 3.2),
        (0.0, 1.6),
        (0.8, 2.4),
        (0.8, 2.4),
        (3.9, 4.0),
        (None, 0.5),
        (3.0, 9.0),
        (50.0, 60.0),
    ]

    assert_windows_equal_those_read_alone(numbered_films[name], windows)


def damaged(source: Path, folder: Path) -> Path:
    """Spoil the 41st packet of a film."""
    return spoiled(source, folder / source.name, [40], b"\xff")


@pytest.mark.long
@pytest.mark.parametrize("name", ["no_b.mp4", "hevc.mp4", "vp9.webm", "mpeg2.mkv", "h264.avi", "raw.h264"])
@pytest.mark.parametrize("strict", [False, True])
def test_damage_affects_a_window_as_if_it_were_read_alone(numbered_films, tmp_path, name, strict):
    """One picture of the film cannot be decoded. Windows have the frames, or the error, that each has alone.

    WINDOWS are eight spans of four seconds, in no order, of which some overlap. A bare stream of H.264 has no
    times, so its only window is the whole film. With `strict`, a window with damage is an error.
    """
    whole_film = (None, None)
    windows = [whole_film] if name == "raw.h264" else WINDOWS
    damaged_film = damaged(numbered_films[name], tmp_path)

    assert_windows_equal_those_read_alone(damaged_film, windows, strict=strict)


def test_a_frame_that_many_windows_want_is_decoded_and_handled_once(numbered_films):
    """The film has 100 pictures; 15 windows of a second each overlap by 0.8 s."""
    windows = [(number * 0.2, number * 0.2 + 1.0) for number in range(15)]
    n_times_handled: Counter[bytes] = Counter()

    def handle(frame: np.ndarray) -> int:
        n_times_handled[frame.tobytes()] += 1
        return int(frame.sum())

    n_decoded = 0
    for _, (frames,) in read_windows(numbered_films["pyramid.mp4"], windows, [(uniform(12), handle)]):
        n_decoded += frames.decoded

    assert set(n_times_handled.values()) == {1}
    assert n_decoded <= 100


def test_a_window_comes_as_soon_as_its_last_frame_does(numbered_films):
    """The film has 25 pictures a second. The window to 0.4 s, in place 1, ends first and comes first.

    It has ten pictures; less than 20 are decoded for it.
    """
    windows = [(3.0, 4.0), (0.0, 0.4), (1.0, 1.4)]

    results = read_windows(numbered_films["closed.ts"], windows, [(uniform(3), lambda frame: frame)])

    first_place, (frames,) = next(results)
    assert first_place == 1
    assert frames.decoded < 20
    later_places = [place for place, _ in results]
    assert later_places == [2, 0]


@pytest.fixture
def packets_reached_by_seeks(monkeypatch):
    """Let a decoder seek to frames five packets ahead; give a list that each seek adds its packet to."""
    monkeypatch.setattr(sparse_room, "SEEK_AHEAD", 5)
    landed_at: list[int] = []
    seek = sparse_room.Decoder._seek_before

    def seek_and_note(*arguments):
        position = seek(*arguments)
        landed_at.append(position.number)
        return position

    monkeypatch.setattr(sparse_room.Decoder, "_seek_before", seek_and_note)
    return landed_at


@pytest.mark.parametrize("name", FILMS_WITH_SEEKS)
def test_frames_after_seeks_are_bit_equal(numbered_films, packets_reached_by_seeks, name):
    """Far frames of a film of 100 pictures are read: 75; or 2, 30, 55 and 97; or 60, 61 and 99.

    The decoder seeks to a key frame before such a frame, without decoding what lies between. The frames have
    the same bits as those of PyAV, which decodes every picture in order.
    """
    all_pictures = decoded_by_pyav(numbered_films[name])
    for numbers in ([75], [2, 30, 55, 97], [60, 61, 99]):
        frames = read_frames(numbered_films[name], at(numbers))

        assert frames.method == "sparse"
        assert frames.status == "ok"
        assert np.array_equal(frames.images, all_pictures[numbers])

    has_sought = len(packets_reached_by_seeks) > 0
    assert has_sought


@pytest.mark.usefixtures("packets_reached_by_seeks")
def test_frames_are_right_where_a_seek_lands_at_a_packet_that_is_not_known(numbered_films, monkeypatch):
    """The decoder seeks to frames five packets ahead, and looks up in its table where it has landed.

    Here no packet is found in the table. So it begins again at the start of the file, and reads on without
    seeks; still only the packets that the frames need are decoded ("sparse"). Frames 10 and 80 are right, and
    so are eight overlapping windows of the film (WINDOWS).
    """
    monkeypatch.setattr(PacketTable, "find_packet", lambda *_: -1)  # not found
    film = numbered_films["pyramid.mp4"]

    frames = read_frames(film, at([10, 80]))

    assert frames.method == "sparse"
    assert read_drawn_numbers(frames.images) == [10, 80]
    assert_windows_equal_those_read_alone(film, WINDOWS)


def begin_another_process():
    """Forget the tables that this process has read, so that it must share those of others."""
    index_room._tables.clear()


@pytest.fixture
def folder_of_shared_facts(tmp_path, monkeypatch):
    """A folder in which processes share tables of packets and digests of files; all count as large."""
    monkeypatch.setattr(file_facts, "LARGE_BYTES", 0)
    folder = tmp_path / "facts"
    folder.mkdir()
    begin_another_process()
    share_in(folder)
    yield folder
    share_in(folder=None)
    begin_another_process()


@pytest.fixture(params=["hevc_cra.ts", "asp.avi", "h264.avi", "av1.mkv", "joined.mkv"])
def film_of_any_index(request, numbered_films, tmp_path):
    """A film of a container that has its own way to list packets; or one that is joined with itself."""
    if request.param != "joined.mkv":
        return numbered_films[request.param]
    joined = remux(numbered_films["pyramid.mp4"], tmp_path / "joined.mkv", edit=list)
    joined.write_bytes(joined.read_bytes() * 2)
    return joined


@pytest.mark.usefixtures("folder_of_shared_facts")
def test_processes_share_the_table_and_digest_of_a_large_file(film_of_any_index, monkeypatch):
    """A process leaves a file's table of packets in a folder, so that the next one need not read the file."""
    path = film_of_any_index
    table_of_file = asdict(index_room._read_table(path))

    table_in_first_process = asdict(index_packets(path))
    digest_in_first_process = file_digest(path)
    begin_another_process()
    reading_the_file_again_fails = None
    monkeypatch.setattr(index_room, "_read_table", reading_the_file_again_fails)
    table_in_second_process = asdict(index_packets(path))
    digest_in_second_process = file_digest(path)

    np.testing.assert_equal(table_in_first_process, table_of_file)
    np.testing.assert_equal(table_in_second_process, table_of_file)
    assert digest_in_second_process == digest_in_first_process


def test_a_process_reads_a_film_itself_if_what_another_process_shares_of_it_cannot_be_read(
    numbered_films, folder_of_shared_facts
):
    """A process shares the table of a film's packets with others, in a file named by a digest.

    The file is overwritten by bytes that are no such table, as if another version of the program had written
    it. The next process must read the film itself, and gets the same table.
    """
    film = numbered_films["asp.avi"]
    table_in_first_process = asdict(index_packets(film))
    names_of_digests = "?" * 64
    shared_files = list(folder_of_shared_facts.glob(names_of_digests))
    assert shared_files
    for file in shared_files:
        file.write_bytes(b"of another version")

    begin_another_process()
    table_in_second_process = asdict(index_packets(film))

    np.testing.assert_equal(table_in_second_process, table_in_first_process)


class CountsItself:
    """Made of a frame by `read_windows`; counts how many of its kind are alive, and how many were at most."""

    n_alive = 0
    max_alive = 0

    def __init__(self, _: np.ndarray) -> None:
        CountsItself.n_alive += 1
        CountsItself.max_alive = max(CountsItself.max_alive, CountsItself.n_alive)

    def __del__(self) -> None:
        CountsItself.n_alive -= 1


def test_frames_of_windows_that_were_given_out_are_not_kept(numbered_films):
    """Ten windows of ten frames follow each other. `CountsItself` is made of each frame.

    The frames of at most three windows may be alive at once: 30.
    """
    windows = [(number * 0.4, number * 0.4 + 0.4) for number in range(10)]

    for _ in read_windows(numbered_films["b1.mp4"], windows, [(uniform(10), CountsItself)]):
        pass

    assert CountsItself.max_alive <= 30
