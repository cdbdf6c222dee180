"""`obygaze frames`, as a user meets it."""

import json
import os
import stat
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from click.testing import CliRunner

from obygaze_features.commands.frames_command import frames
from obygaze_features.video.sheet import LINE_HEIGHT, label

GREYS = 20  # frame number n is grey of level 10 n


@pytest.fixture(scope="module")
def film(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("film") / "film.mp4"
    with av.open(str(path), "w") as output:
        stream = output.add_stream("libx264", rate=10, options={"crf": "10", "preset": "veryfast"})
        stream.width, stream.height, stream.pix_fmt = 64, 32, "yuv420p"
        for number in range(GREYS):
            frame = av.VideoFrame.from_ndarray(np.full((32, 64, 3), 10 * number, np.uint8), format="rgb24")
            frame.pts, frame.time_base = number, Fraction(1, 10)
            output.mux(stream.encode(frame))
        output.mux(stream.encode(None))
    return path


def run(*arguments: object):
    return CliRunner().invoke(frames, [str(argument) for argument in arguments])


def obygaze(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "obygaze", "frames", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def one_line(stderr: str, path: Path, message: str) -> bool:
    return (
        stderr.startswith("obygaze: error: ")
        and stderr.count("\n") == 1
        and str(path) in stderr
        and message in stderr
    )


def test_it_says_which_frames_and_how_they_were_got(film):
    result = run(film, "--n", 4)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == f"{film}: 4 of 20 frames, 64x32"
    assert lines[1].startswith("status ok, method sparse")
    assert [line.split() for line in lines[-4:]] == [
        ["0", "0.000"],
        ["5", "0.500"],
        ["10", "1.000"],
        ["15", "1.500"],
    ]


def test_32_even_frames_are_the_default(film):
    document = json.loads(run(film, "--json").stdout)
    assert document["sampling"] == {"policy": "uniform", "n": 32}
    assert [frame["index"] for frame in document["frames"]] == [i * 20 // 32 for i in range(32)]


@pytest.mark.parametrize(
    ("options", "indices"),
    [
        (["--indices", "0,5,19"], [0, 5, 19]),
        (["--fps", 2], [0, 5, 10, 15]),
        (["--keyframes", 2], [0, 0]),
        (["--n", 2, "--start", 0.5, "--end", 0.9], [5, 7]),
    ],
)
def test_each_way_to_choose(film, options, indices):
    document = json.loads(run(film, "--json", *options).stdout)
    assert [frame["index"] for frame in document["frames"]] == indices
    assert document["status"] == "ok"


def test_nothing_is_stored_unless_asked_for(film, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(film).exit_code == 0
    assert list(tmp_path.iterdir()) == []


def test_the_npz_holds_full_size_pixels_and_is_the_same_twice(film, tmp_path):
    for name in ("a.npz", "b.npz"):
        assert run(film, "--indices", "3,12", "--npz", tmp_path / name).exit_code == 0
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    with np.load(tmp_path / "a.npz", allow_pickle=False) as saved:
        assert saved["frames"].shape == (2, 32, 64, 3)
        assert saved["frames"].dtype == np.uint8
        assert np.abs(saved["frames"].mean(axis=(1, 2, 3)) - [30, 120]).max() < 3
        assert saved["index"].tolist() == [3, 12]
        assert saved["time_s"].tolist() == [0.3, 1.2]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.npz", "b.npz"]


def test_the_sheet_is_a_png_of_thumbnails_in_order_each_with_its_number_and_time(film, tmp_path):
    sheet = tmp_path / "sheet.png"
    assert run(film, "--n", 10, "--sheet", sheet).exit_code == 0
    assert sheet.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    with av.open(str(sheet)) as container:
        picture = next(container.decode(video=0)).to_ndarray(format="rgb24")
    width = label("18  1.800 s").shape[1]
    cells = picture.reshape(2, 32 + LINE_HEIGHT, 8, width, 3)
    greys = cells[:, :32, :, :64].mean(axis=(1, 3, 4)).ravel()
    assert np.abs(greys - [*range(0, 200, 20), *[0] * 6]).max() < 3
    assert (cells[1, 32:, 1, :, 0] == label("18  1.800 s")).all()
    assert not cells[1, :, 2:].any()


def test_no_two_signs_of_a_label_look_alike():
    assert len({label(sign).tobytes() for sign in "0123456789.-s "}) == 14


@pytest.mark.parametrize(("option", "name"), [("--sheet", "sheet.jpg"), ("--npz", "frames.npy")])
def test_an_output_is_named_for_what_it_is(film, tmp_path, option, name):
    result = run(film, option, tmp_path / name)
    assert result.exit_code == 2
    assert f"{name}: name it ." in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_files_that_exist_are_kept_unless_forced(film, tmp_path):
    kept = tmp_path / "kept.npz"
    kept.write_text("mine", encoding="utf-8")
    result = obygaze(film, "--npz", kept)
    assert result.returncode == 1
    assert result.stderr.endswith(
        "kept.npz exists already: give --force to replace it, or choose another name\n"
    )
    assert kept.read_text(encoding="utf-8") == "mine"
    assert run(film, "--npz", kept, "--force").exit_code == 0
    assert kept.read_bytes().startswith(b"PK")


def test_the_video_itself_is_never_replaced(film):
    before = film.read_bytes()
    assert run(film, "--npz", film, "--force").exit_code == 1
    assert film.read_bytes() == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--n", "3", "--fps", "2"], "--n and --fps cannot be combined"),
        (["--indices", "1,x"], "whole numbers joined by commas"),
        (["--indices", "-1"], "numbered from 0 on"),
        (["--fps", "0"], "above 0"),
        (["--n", "0"], "0 is not in the range"),
    ],
)
def test_senseless_options_are_usage_errors(film, options, message):
    result = run(film, *options)
    assert result.exit_code == 2
    assert message in result.stderr


def test_what_goes_wrong_is_one_line_and_exit_code_1(film, tmp_path):
    empty = tmp_path / "empty.mp4"
    empty.touch()
    missing = tmp_path / "no"
    for arguments, path, message in (
        ([empty], empty, "the file is empty (0 bytes)"),
        ([tmp_path], tmp_path, "this is a directory, not a video file"),
        ([film, "--indices", "20"], film, "frame 20 is not among the 20 from 0 to 19"),
        ([film, "--npz", missing / "a.npz"], missing, "there is no such folder to save in"),
    ):
        result = obygaze(*arguments)
        assert result.returncode == 1
        assert one_line(result.stderr, path, message)


def test_a_failed_write_leaves_nothing_behind(film, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    result = run(film, "--npz", tmp_path / "a.npz")
    assert isinstance(result.exception, OSError)
    assert list(tmp_path.iterdir()) == []


def test_saved_files_have_ordinary_permissions(film, tmp_path):
    mask = os.umask(0o022)
    try:
        assert run(film, "--n", 1, "--sheet", tmp_path / "s.png").exit_code == 0
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "s.png").stat().st_mode) == 0o644


def test_the_help_shows_examples():
    result = run("--help")
    assert "Examples:" in result.stdout
    assert "obygaze frames clip.mp4 --indices 0,5,390 --npz f.npz" in result.stdout
