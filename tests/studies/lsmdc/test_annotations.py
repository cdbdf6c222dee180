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
GOOD_LINE = f"1004_Juno_00.00.01.000-00.00.02.000\t{TIMES}\tSOMEONE smiles.\n"


@pytest.fixture
def write_training_file(tmp_path):
    """Return a function that writes the file of training captions."""
    return lambda data: written(tmp_path / FILES["training"], data)


def test_the_clip_and_the_sentence_of_a_line_are_read(write_training_file):
    """A line has six fields: the clip, four times and the sentence."""
    (caption,) = read_captions(write_training_file(GOOD_LINE))
    assert caption == Caption("1004_Juno_00.00.01.000-00.00.02.000", "SOMEONE smiles.", 1)


@pytest.mark.parametrize("text", [GOOD_LINE.replace("\n", "\r\n"), GOOD_LINE.rstrip()], ids=["CR LF", "none"])
def test_a_sentence_is_read_whatever_ends_its_line(write_training_file, text):
    (caption,) = read_captions(write_training_file(text))
    assert caption.sentence == "SOMEONE smiles."


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
    ids=["five fields", "seven fields", "no sentence", "empty", "a path as clip", "not UTF-8"],
)
def test_a_bad_line_is_refused_with_its_number(write_training_file, line):
    with pytest.raises(TrainError, match=r"LSMDC16_annos_training\.csv line 2"):
        read_captions(
            write_training_file(GOOD_LINE.encode() + (line if isinstance(line, bytes) else line.encode()))
        )


def test_missing_and_empty_files_are_named(tmp_path, write_training_file):
    with pytest.raises(FileNotFoundError):
        read_annotations(tmp_path)
    with pytest.raises(TrainError, match=r"LSMDC16_annos_training\.csv"):
        read_captions(write_training_file(""))


@pytest.fixture
def folder_of_videos(tmp_path):
    """Videos of the clips a.b and c in two folders, beside other files."""
    for name in ("x/a.b.avi", "y/c.mp4", "y/a.b.srt", "y/other.avi"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def test_videos_are_found_in_any_folder_below_by_the_name_of_their_clip(folder_of_videos):
    assert find_videos(folder_of_videos, ["a.b", "c", "missing"]) == {
        "a.b": folder_of_videos / "x" / "a.b.avi",
        "c": folder_of_videos / "y" / "c.mp4",
    }


def test_two_videos_of_one_clip_are_refused_with_both_names(folder_of_videos):
    (folder_of_videos / "y" / "a.b.mkv").touch()
    with pytest.raises(TrainError, match=r"a\.b\.avi and .*a\.b\.mkv"):
        find_videos(folder_of_videos, ["a.b"])


@pytest.mark.parametrize("name", [".", "nowhere"], ids=["a folder without them", "no folder"])
def test_a_folder_with_no_video_of_any_clip_is_refused(folder_of_videos, name):
    with pytest.raises(TrainError, match="--videos"):
        find_videos(folder_of_videos / name, ["d", "e"])


def captions(*clip_ids):
    """Make a caption of each clip."""
    return tuple(Caption(clip_id, "A man.", line) for line, clip_id in enumerate(clip_ids, start=1))


CAPTIONS_OF_SPLITS = {
    "training": captions(
        "0002_As_Good_As_It_Gets_00.01.02.003-00.01.04.005", "1055_Marley_and_me_00.01.02.003-00.01.04.005"
    ),
    "validation": captions("1004_Juno_00.01.02.003-00.01.04.005"),
    "test": captions("1004_Juno_00.01.02.003-00.01.04.005"),
}


def test_the_film_of_a_clip_stands_between_its_number_and_its_times():
    assert movie_of("1040_The_Ugly_Truth_00.01.02.003-00.01.04.005") == "The_Ugly_Truth"


def test_clips_are_counted_for_titles_in_other_letters_or_with_an_ampersand():
    titles = ("As Good as It Gets", "Marley & Me", "Juno")
    assert count_movies(CAPTIONS_OF_SPLITS["training"], titles) == {"As Good as It Gets": 1, "Marley & Me": 1}


def test_excluded_films_are_left_out_of_training_and_validation_alone(tmp_path):
    """Films that ObyGaze12 shares with LSMDC must not be trained on. The published test set stays whole."""
    (tmp_path / "films.txt").write_text("# ObyGaze12\n\nMarley and Me\nJuno\nThe Help\n")
    captions, excluded = exclude(CAPTIONS_OF_SPLITS, read_titles(tmp_path / "films.txt"))
    n_captions = {split: len(captions_of_split) for split, captions_of_split in captions.items()}
    assert n_captions == {"training": 1, "validation": 0, "test": 1}
    assert excluded == {"training": {"Marley and Me": 1}, "validation": {"Juno": 1}}


def test_a_file_without_a_title_is_refused(tmp_path):
    (tmp_path / "none.txt").write_text("# nothing\n")
    with pytest.raises(TrainError, match=r"none\.txt"):
        read_titles(tmp_path / "none.txt")
