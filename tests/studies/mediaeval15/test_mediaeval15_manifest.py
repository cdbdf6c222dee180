"""The task's clips become a manifest whose split is by film, and what was assumed or left out is said."""

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import read_manifest, write_manifest
from obygaze_studies.mediaeval15 import import_mediaeval15

HEADER = "clip,movie,split,valence,arousal,violence,note"


def folder_of(folder, *rows, header=HEADER, **lists):
    """Write a table of clips, and lists of films such as dev.txt; return the folder."""
    (folder / "clips.csv").write_text("\n".join([header, *rows, ""]), encoding="utf-8")
    for name, movies in lists.items():
        (folder / f"{name}.txt").write_text("\n".join([*movies, ""]), encoding="utf-8")
    return folder


@pytest.fixture
def imported(tmp_path):
    """An import of three clips, whose videos should be in a folder that is not there.

    The first has labels on all axes, the second and third none; a column note is none of the task's.
    """
    source = folder_of(
        tmp_path,
        "ACCEDE00001.mp4,one,dev,-0.4,calm,1,x",
        "ACCEDE00002.mp4,one,dev,,,,y",
        "new-1.mp4,two,test,,,,z",
    )
    return import_mediaeval15(source, tmp_path, tmp_path / "videos")


def test_clips_of_the_task_become_a_manifest_with_violence_as_the_level(imported, tmp_path):
    """The first of three clips is violent (1) and has a score of valence and a class of arousal.

    All of this is kept in further columns. The last clip has no labels, and so no level.
    """
    first, _second, last = imported.manifest
    assert first.clip_id == "ACCEDE00001.mp4"
    assert first.movie == "one"
    assert first.video == "videos/ACCEDE00001.mp4"
    assert first.extras == {"split": "dev", "valence": "-0.4", "arousal": "calm", "violence": "1"}
    assert first.level == "violent"
    assert last.extras == {"split": "test", "valence": "", "arousal": "", "violence": ""}
    assert last.level is None
    assert imported.manifest.codebook.name == "mediaeval15"

    write_manifest(imported.manifest, tmp_path / "m.csv")
    assert read_manifest(tmp_path / "m.csv") == imported.manifest


def test_notices_of_an_import_say_what_differs_from_the_published_corpus(imported, tmp_path):
    """The published corpus has 6,144 dev and 4,756 test clips, named ACCEDE00000.mp4 and so on.

    Imported are two clips of dev and one of test, called new-1.mp4, without their videos.
    """
    assert imported.notices == (
        "dev: 2 clips of 1 movie; the published corpus has 6,144 of 100",
        "test: 1 clip of 1 movie; the published corpus has 4,756 of 99",
        "1 clip is not named as LIRIS-ACCEDE's (ACCEDE00000.mp4)",
        f"0 of 3 named videos are in {tmp_path / 'videos'}: there is no such folder",
        "left out 1 column: note",
    )


def test_the_split_of_clips_may_come_from_lists_of_films(tmp_path):
    """Clip a.mp4 is of the film one, which dev.txt lists, and b.mp4 of the film two, which test.txt lists.

    The table of clips has no column for the split. A listed film without clips has a notice.
    """
    source = folder_of(
        tmp_path, "a.mp4,one", "b.mp4,two", header="clip,movie", dev=["one", "lost"], test=["two"]
    )

    imported = import_mediaeval15(source, tmp_path)

    assert [clip.extras["split"] for clip in imported.manifest] == ["dev", "test"]
    assert imported.manifest.clips[0].video == "a.mp4"
    assert "no clip of 1 listed movie; the first is lost" in imported.notices


@pytest.mark.parametrize(
    ("rows", "header", "lists", "message"),
    [
        (["a,one,dev", "b,one,test"], "clip,movie,split", {}, "line 3, column split: movie 'one'"),
        (["a,one,"], "clip,movie,split", {}, "line 2, column split"),
        (["a,one"], "clip,movie", {}, "dev.txt"),
        (["a,one"], "clip,movie", {"dev": ["one"], "test": ["one"]}, "movie 'one'"),
        (["a,two"], "clip,movie", {"dev": ["one"], "test": []}, "movie 'two'"),
        (["a,one,dev,yes"], "clip,movie,split,violence", {}, "column violence: 'yes'"),
        (["a,one,dev", "a,one,dev"], "clip,movie,split", {}, "clip 'a'"),
        (["a,dev"], "clip,split", {}, "column movie"),
    ],
    ids=[
        "a film on both sides",
        "a clip without split",
        "neither a column nor lists of the split",
        "a film in both lists",
        "a film in no list",
        "a word that is no label",
        "a clip twice",
        "no column of films",
    ],
)
def test_a_table_that_cannot_be_imported_is_refused_in_one_line(tmp_path, rows, header, lists, message):
    """The table of clips has a header and rows. A film is on one side of the split, dev or test.

    Where the table has no column for it, files such as dev.txt must list the films of a side: `lists`.
    """
    folder = folder_of(tmp_path, *rows, header=header, **lists)

    with pytest.raises(ManifestError) as refused:
        import_mediaeval15(folder, tmp_path)

    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
