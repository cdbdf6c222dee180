"""LSMDC16's files as they are, and what is wrong with others in one line (check 13); films (decision 4)."""

import pytest

from obygaze_studies.errors import TrainError
from obygaze_studies.lsmdc.lsmdc16 import (
    FILES,
    Caption,
    count_movies,
    exclude,
    find_videos,
    movie_of,
    read_annotations,
    read_captions,
    read_titles,
)
from tests.files import written

TIMES = "\t".join(["00.00.01.000"] * 4)
GOOD = f"1004_Juno_00.00.01.000-00.00.02.000\t{TIMES}\tSOMEONE smiles.\n"


@pytest.fixture
def file(tmp_path):
    return lambda data: written(tmp_path / FILES["training"], data)


def test_six_fields_of_which_two_are_used(file):
    (caption,) = read_captions(file(GOOD))
    assert caption == Caption("1004_Juno_00.00.01.000-00.00.02.000", "SOMEONE smiles.", 1)
    windows = GOOD.replace("\n", "\r\n") * 2
    assert [c.sentence for c in read_captions(file(windows))] == ["SOMEONE smiles."] * 2
    assert read_captions(file(GOOD.rstrip()))[0].sentence == "SOMEONE smiles."


@pytest.mark.parametrize(
    "line",
    [
        "a\tb\tc\td\te\n",
        "a\tb\tc\td\te\tf\tg\n",
        f"a\t{TIMES}\t\n",
        "\n",
        f"../a\t{TIMES}\tA man.\n",
        f"a\t{TIMES}\tcaf\xe9\n".encode("latin-1"),
    ],
)
def test_a_bad_line_is_named(file, line):
    with pytest.raises(TrainError, match=r"LSMDC16_annos_training\.csv line 2"):
        read_captions(file(GOOD.encode() + (line if isinstance(line, bytes) else line.encode())))


def test_missing_and_empty_files_are_named(tmp_path, file):
    with pytest.raises(FileNotFoundError):
        read_annotations(tmp_path)
    with pytest.raises(TrainError, match=r"LSMDC16_annos_training\.csv"):
        read_captions(file(""))


def test_videos_are_found_anywhere_below_by_their_name(tmp_path):
    for name in ("x/a.b.avi", "y/c.mp4", "y/a.b.srt", "y/other.avi"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert find_videos(tmp_path, ["a.b", "c", "missing"]) == {
        "a.b": tmp_path / "x" / "a.b.avi",
        "c": tmp_path / "y" / "c.mp4",
    }
    (tmp_path / "y" / "a.b.mkv").touch()
    with pytest.raises(TrainError, match=r"a\.b\.avi and .*a\.b\.mkv"):
        find_videos(tmp_path, ["a.b"])
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(TrainError, match="--videos"):
            find_videos(folder, ["e", "d"])


def captions(*clip_ids):
    return tuple(Caption(clip_id, "A man.", line) for line, clip_id in enumerate(clip_ids, start=1))


SPLITS = {
    "training": captions(
        "0002_As_Good_As_It_Gets_00.01.02.003-00.01.04.005", "1055_Marley_and_me_00.01.02.003-00.01.04.005"
    ),
    "validation": captions("1004_Juno_00.01.02.003-00.01.04.005"),
    "test": captions("1004_Juno_00.01.02.003-00.01.04.005"),
}


def test_films_are_matched_between_number_and_time_stamps_however_spelt():
    assert movie_of("1040_The_Ugly_Truth_00.01.02.003-00.01.04.005") == "The_Ugly_Truth"
    titles = ("As Good as It Gets", "Marley & Me", "Juno")
    assert count_movies(SPLITS["training"], titles) == {"As Good as It Gets": 1, "Marley & Me": 1}


def test_excluded_films_leave_training_and_validation_and_the_rest_is_said(tmp_path):
    (tmp_path / "films.txt").write_text("# ObyGaze12\n\nMarley and Me\nJuno\nThe Help\n")
    captions, excluded = exclude(SPLITS, read_titles(tmp_path / "films.txt"))
    assert [len(captions[split]) for split in SPLITS] == [1, 0, 1]
    assert excluded == {"training": {"Marley and Me": 1}, "validation": {"Juno": 1}}
    (tmp_path / "none.txt").write_text("# nothing\n")
    with pytest.raises(TrainError, match=r"none\.txt"):
        read_titles(tmp_path / "none.txt")
