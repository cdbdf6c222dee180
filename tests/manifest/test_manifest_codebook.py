"""A manifest carries its codebook: by name, or in a file beside it; what contradicts is refused."""

from dataclasses import replace

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import (
    Clip,
    Codebook,
    Concept,
    Level,
    Manifest,
    Task,
    builtin_codebook,
    codebook_file,
    read_manifest,
    write_manifest,
)

VIOLENCE = Codebook(
    "violence",
    version="1",
    levels=(Level("calm", "Calm"), Level("unsure", label=False), Level("violent", synonyms=("fight",))),
    concepts=(Concept("Gun", synonyms=("pistol",)), Concept("Scream", visual=False)),
    tasks=(Task("calm_violent", negatives=("calm",), positives=("violent",)),),
)
"""A lab's own codebook, with the levels calm, unsure and violent, and the concepts Gun and Scream."""
TEXT_OF_VIOLENCE = VIOLENCE.to_toml()
HEADER = "clip_id,movie,video,start_s,end_s,level,concepts,annotator"
ROW_OF_VIOLENCE = "a-1,a,,0.0,1.5,violent,Gun;Scream,"


def manifest_of_violence(folder):
    """Make a manifest of one clip, labelled by a lab's own codebook "violence"."""
    return Manifest(
        (Clip("a-1", "a", "", start_s=0, end_s=1.5, level="violent", concepts=("Scream", "Gun")),),
        folder,
        VIOLENCE,
    )


def test_a_labs_codebook_is_written_beside_its_manifest(tmp_path):
    """A manifest has one clip, a-1, labelled by a lab's own codebook, called "violence".

    The manifest names it in a column, and the codebook is written beside it as films.codebook.toml.
    """
    path = tmp_path / "films.csv"

    write_manifest(manifest_of_violence(tmp_path), path)

    assert path.read_text() == (
        "clip_id,movie,video,start_s,end_s,level,concepts,annotator,codebook\n"
        "a-1,a,,0.0,1.5,violent,Gun;Scream,,violence\n"
    )
    assert codebook_file(path) == tmp_path / "films.codebook.toml"
    assert codebook_file(path).is_file()


def test_a_labs_codebook_is_read_with_its_manifest(tmp_path):
    """A manifest names a lab's own codebook, "violence", in a column, and its text lies beside it.

    Both are read back as they were. The column is no further column of the clip.
    """
    manifest = manifest_of_violence(tmp_path)
    write_manifest(manifest, tmp_path / "films.csv")

    read_back = read_manifest(tmp_path / "films.csv")

    assert read_back == manifest
    assert read_back.codebook == VIOLENCE
    assert read_back.digest() == manifest.digest()
    (clip,) = read_back.clips
    assert dict(clip.extras) == {}


def test_a_manifest_and_its_codebook_are_written_again_byte_for_byte(tmp_path):
    """A manifest names a lab's own codebook, "violence", which lies in a file beside it.

    Read and written under another name, both files have the same bytes.
    """
    write_manifest(manifest_of_violence(tmp_path), tmp_path / "films.csv")

    write_manifest(read_manifest(tmp_path / "films.csv"), tmp_path / "again.csv")

    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "films.csv").read_bytes()
    codebook = (tmp_path / "films.codebook.toml").read_bytes()
    assert (tmp_path / "again.codebook.toml").read_bytes() == codebook


@pytest.mark.parametrize(
    ("codebook_name", "content_of_file"),
    [
        ("mobygaze", f"{HEADER},codebook\na,a,,,,S,,,mobygaze\n"),
        ("obygaze12", f"{HEADER}\na,a,,,,S,,\n"),
    ],
)
def test_a_built_in_codebook_is_named_unless_it_is_obygaze12(tmp_path, codebook_name, content_of_file):
    """A manifest has one clip with the level S of a built-in codebook, of which no file stands beside it.

    The codebook's name stands in a further column, codebook. The codebook obygaze12 is the default and has no
    such column.
    """
    films = tmp_path / "films.csv"
    manifest = Manifest((Clip("a", "a", level="S"),), tmp_path, builtin_codebook(codebook_name))

    write_manifest(manifest, films)

    assert films.read_text() == content_of_file
    assert read_manifest(films).codebook.name == codebook_name
    assert list(tmp_path.iterdir()) == [films]


@pytest.mark.parametrize("first_row", [",,,,,,,,", " ,,,,,,,, "], ids=["empty cells", "blanks"])
def test_an_empty_row_says_nothing_of_the_codebook(tmp_path, first_row):
    """The first row of a manifest is empty, and the second one has the level S and the codebook mobygaze.

    If the first row decided, it would name no codebook, which means the default, obygaze12. That has a level
    S too, so that the row would be read by the wrong codebook, and nothing would show it.
    """
    path = tmp_path / "films.csv"
    path.write_text(f"{HEADER},codebook\n{first_row}\na,a,,,,S,,,mobygaze\n")

    manifest = read_manifest(path)

    assert manifest.codebook.name == "mobygaze"
    assert len(manifest) == 1


@pytest.mark.parametrize(
    ("rows", "text_of_codebook", "message"),
    [
        pytest.param(
            [f"{ROW_OF_VIOLENCE},violence"], None, "'violence'", id="no file of a codebook of the lab's"
        ),
        pytest.param([f"{ROW_OF_VIOLENCE},mobygase"], None, "'mobygase'", id="a name that is mistyped"),
        pytest.param(
            [f"{ROW_OF_VIOLENCE},violence", f"b{ROW_OF_VIOLENCE},mobygaze"],
            None,
            "line 3, column codebook",
            id="two codebooks",
        ),
        pytest.param(
            [f"{ROW_OF_VIOLENCE},violence", f"b{ROW_OF_VIOLENCE},"],
            None,
            "line 3, column codebook",
            id="a row without a codebook",
        ),
        pytest.param(
            [f"{ROW_OF_VIOLENCE},mobygaze"], TEXT_OF_VIOLENCE, "column codebook", id="a file of another one"
        ),
        pytest.param(
            [f"{ROW_OF_VIOLENCE},violence"],
            "name = 1",
            "films.codebook.toml",
            id="a file that is no codebook",
        ),
        pytest.param(
            ["a,a,,,,vilent,,,violence"], TEXT_OF_VIOLENCE, "column level", id="a level that is mistyped"
        ),
        pytest.param(
            ["a,a,,,,calm,Gum,,violence"],
            TEXT_OF_VIOLENCE,
            "column concepts",
            id="a concept that is mistyped",
        ),
        pytest.param(
            ["a,a,,,,S,,,violence"], TEXT_OF_VIOLENCE, r"'S'.*'violence'", id="a level of another codebook"
        ),
    ],
)
def test_contradictions_with_the_codebook_are_refused_in_one_line(tmp_path, rows, text_of_codebook, message):
    """Rows of films.csv name their codebook in the last column, such as "violence", which a lab made itself.

    The text of such a codebook must be in films.codebook.toml beside them (None: there is no such file).
    Rows, file and codebook contradict each other, and the error says in one line which name or cell is wrong.
    """
    table_of_clips = tmp_path / "films.csv"
    table_of_clips.write_text("\n".join([f"{HEADER},codebook", *rows]) + "\n", encoding="utf-8")
    if text_of_codebook is not None:
        (tmp_path / "films.codebook.toml").write_text(text_of_codebook, encoding="utf-8")

    with pytest.raises(ManifestError, match=message) as refusal:
        read_manifest(table_of_clips)

    assert "\n" not in str(refusal.value)


def test_a_manifest_is_not_written_beside_a_codebook_that_is_not_its_own(tmp_path):
    """Beside films.csv lies a lab's codebook. A manifest of the default codebook would be read with it.

    The manifest that is there stays as it was.
    """
    path = tmp_path / "films.csv"
    write_manifest(manifest_of_violence(tmp_path), path)
    before = path.read_bytes()
    of_default_codebook = Manifest((Clip("a", "a"),), tmp_path)

    with pytest.raises(ManifestError, match=r"films.codebook.toml"):
        write_manifest(of_default_codebook, path)

    assert path.read_bytes() == before


def test_a_labs_codebook_may_not_have_the_name_of_a_built_in_one(tmp_path):
    """A lab's codebook of violence is called mobygaze, as a built-in one is.

    It would be taken for the codebook of MObyGaze when the manifest is read.
    """
    codebook_called_mobygaze = replace(VIOLENCE, name="mobygaze")
    clips = manifest_of_violence(tmp_path).clips
    with pytest.raises(ManifestError, match="'mobygaze'"):
        write_manifest(Manifest(clips, tmp_path, codebook_called_mobygaze), tmp_path / "films.csv")


def test_a_built_in_codebook_in_other_words_is_written_with_the_manifest_that_is_read_with_it(tmp_path):
    """A lab explains the built-in codebook obygaze12 in its own words, in a file beside films.csv.

    Its labels are the same, so it is read, and written beside the manifest again: its words are what
    annotators judge by.
    """
    obygaze12 = builtin_codebook("obygaze12")
    in_other_words = replace(obygaze12, construct="what we call a gaze that makes objects")
    path = tmp_path / "films.csv"
    path.write_text(f"{HEADER}\na-1,a,,0.0,1.5,S,,\n")
    codebook_file(path).write_text(in_other_words.to_toml())
    manifest = read_manifest(path)

    write_manifest(manifest, tmp_path / "again.csv")

    assert read_manifest(tmp_path / "again.csv").codebook == in_other_words
    assert in_other_words.definition() != obygaze12.definition()
