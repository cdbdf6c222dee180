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


@pytest.mark.parametrize("ending", ["\n", "\r\n", ""], ids=["LF", "CR LF", "none"])
def test_the_clip_and_the_sentence_of_a_line_are_read(write_training_file, ending):
    """A line has six fields: the clip, four times and the sentence."""
    (caption,) = read_captions(write_training_file(GOOD_LINE.rstrip() + ending))
    assert caption == Caption("1004_Juno_00.00.01.000-00.00.02.000", "SOMEONE smiles.", line=1)


@pytest.mark.parametrize(
    "bad_line",
    [
        b"a\tb\tc\td\te\n",
        b"a\tb\tc\td\te\tf\tg\n",
        f"a\t{TIMES}\t\n".encode(),
        b"\n",
        f"../a\t{TIMES}\tA man.\n".encode(),
        f"a\t{TIMES}\tcaf\xe9\n".encode("latin-1"),
    ],
    ids=["five fields", "seven fields", "no sentence", "empty", "a path as clip", "not UTF-8"],
)
def test_a_bad_line_is_refused_with_its_number(write_training_file, bad_line):
    """A line has six fields between tabs: the clip, four times and the sentence. The first line is good."""
    good_line = GOOD_LINE.encode()
    path = write_training_file(good_line + bad_line)

    with pytest.raises(TrainError, match=r"LSMDC16_annos_training\.csv line 2"):
        read_captions(path)


def test_annotations_of_a_folder_without_their_files_are_refused(tmp_path):
    """LSMDC has a file of captions for each split, as LSMDC16_annos_training.csv; the folder is empty."""
    with pytest.raises(FileNotFoundError, match=r"LSMDC16_annos_training\.csv"):
        read_annotations(tmp_path)


def test_an_empty_file_of_captions_is_refused_by_its_name(write_training_file):
    with pytest.raises(TrainError, match=r"LSMDC16_annos_training\.csv"):
        read_captions(write_training_file(""))


def test_a_file_of_film_titles_without_a_title_is_refused_by_its_name(tmp_path):
    """Its only line is a comment, so that no film would be excluded from the training."""
    (tmp_path / "none.txt").write_text("# no title\n")

    with pytest.raises(TrainError, match=r"none\.txt"):
        read_titles(tmp_path / "none.txt")


def touch_files(folder, *names):
    """Make empty files below a folder."""
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()


def test_videos_are_found_in_any_folder_below_by_the_name_of_their_clip(tmp_path):
    """Of the clips a.b, c and missing, two have a video; a.b has subtitles besides, which are no video."""
    touch_files(tmp_path, "x/a.b.avi", "y/c.mp4", "y/a.b.srt", "y/other.avi")

    video_of_clip = find_videos(tmp_path, ["a.b", "c", "missing"])

    assert video_of_clip == {"a.b": tmp_path / "x" / "a.b.avi", "c": tmp_path / "y" / "c.mp4"}


def test_a_folder_without_any_of_the_videos_is_refused_with_its_option(tmp_path):
    """The folder has a video of the clip a.b, and videos of d and e are looked for; or there is no folder."""
    touch_files(tmp_path, "x/a.b.avi")

    with pytest.raises(TrainError, match="--videos"):
        find_videos(tmp_path, ["d", "e"])
    with pytest.raises(TrainError, match="--videos"):
        find_videos(tmp_path / "nowhere", ["a.b"])


def test_two_videos_of_a_clip_are_refused_and_both_named(tmp_path):
    touch_files(tmp_path, "x/a.b.avi", "y/a.b.mkv")

    with pytest.raises(TrainError, match=r"a\.b\.avi and .*a\.b\.mkv"):
        find_videos(tmp_path, ["a.b"])


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


def test_clips_are_counted_for_titles_in_other_letters_or_with_an_ampersand():
    """The film of a clip stands between its number and its times."""
    assert movie_of("1040_The_Ugly_Truth_00.01.02.003-00.01.04.005") == "The_Ugly_Truth"
    titles = ("As Good as It Gets", "Marley & Me", "Juno")
    assert count_movies(CAPTIONS_OF_SPLITS["training"], titles) == {"As Good as It Gets": 1, "Marley & Me": 1}


def test_excluded_films_are_left_out_of_training_and_validation_alone(tmp_path):
    """Films that ObyGaze12 shares with LSMDC must not be trained on. The published test set stays whole."""
    (tmp_path / "films.txt").write_text("# ObyGaze12\n\nMarley and Me\nJuno\nThe Help\n")
    captions, excluded = exclude(CAPTIONS_OF_SPLITS, read_titles(tmp_path / "films.txt"))
    n_captions = {split: len(captions_of_split) for split, captions_of_split in captions.items()}
    assert n_captions == {"training": 1, "validation": 0, "test": 1}
    assert excluded == {"training": {"Marley and Me": 1}, "validation": {"Juno": 1}}
