"""A manifest carries its codebook: by name, or in a file beside it; what contradicts is refused."""

from dataclasses import replace

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import (
    FIELDS,
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
    "1",
    (Level("calm", "Calm"), Level("unsure", label=False), Level("violent", synonyms=("fight",))),
    (Concept("Gun", synonyms=("pistol",)), Concept("Scream", visual=False)),
    (Task("calm_violent", ("calm",), ("violent",)),),
)
BESIDE = VIOLENCE.to_toml()
HEADER = ",".join(FIELDS)
ROW = "a-1,a,,0.0,1.5,violent,Gun;Scream,"


def manifest(folder, *clips, codebook=VIOLENCE):
    return Manifest(clips or (Clip("a-1", "a", "", 0, 1.5, "violent", ("Scream", "Gun")),), folder, codebook)


def written(path, *rows, header=f"{HEADER},codebook"):
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def test_a_labs_codebook_is_kept_beside_its_manifest(tmp_path):
    """The manifest names its codebook in a column, and the codebook is written as films.codebook.toml.

    Both are read back and written again byte for byte.
    """
    write_manifest(manifest(tmp_path), tmp_path / "films.csv")
    assert (tmp_path / "films.csv").read_text() == f"{HEADER},codebook\n{ROW},violence\n"
    assert codebook_file(tmp_path / "films.csv").name == "films.codebook.toml"
    again = read_manifest(tmp_path / "films.csv")
    assert again == manifest(tmp_path)
    assert again.codebook == VIOLENCE
    assert again.digest() == manifest(tmp_path).digest()
    assert dict(again.clips[0].extras) == {}
    write_manifest(again, tmp_path / "again.csv")

    for suffix in (".csv", ".codebook.toml"):
        assert (tmp_path / f"again{suffix}").read_bytes() == (tmp_path / f"films{suffix}").read_bytes()


def test_a_built_in_codebook_is_named_unless_it_is_obygaze12(tmp_path):
    """obygaze12 is the default. Built-in codebooks need no file beside the manifest."""
    for name, column in (("mobygaze", ",mobygaze"), ("obygaze12", "")):
        written = manifest(tmp_path, Clip("a", "a", level="S"), codebook=builtin_codebook(name))
        write_manifest(written, tmp_path / "films.csv")
        header = f"{HEADER},codebook" if column else HEADER
        assert (tmp_path / "films.csv").read_text() == f"{header}\na,a,,,,S,,{column}\n"
        assert read_manifest(tmp_path / "films.csv").codebook.name == name
    assert [path.name for path in tmp_path.iterdir()] == ["films.csv"]


@pytest.mark.parametrize(
    ("rows", "beside", "message"),
    [
        ([f"{ROW},violence"], None, "'violence'"),
        ([f"{ROW},mobygase"], None, "'mobygase'"),
        ([f"{ROW},violence", f"b{ROW},mobygaze"], None, "line 3, column codebook"),
        ([f"{ROW},violence", f"b{ROW},"], None, "line 3, column codebook"),
        ([f"{ROW},mobygaze"], BESIDE, "column codebook"),
        ([f"{ROW},violence"], "name = 1", "films.codebook.toml"),
        (["a,a,,,,vilent,,,violence"], BESIDE, "column level"),
        (["a,a,,,,calm,Gum,,violence"], BESIDE, "column concepts"),
        (["a,a,,,,S,,,violence"], BESIDE, r"'S'.*'violence'"),
    ],
)
def test_contradictions_with_the_codebook_are_refused_in_one_line(tmp_path, rows, beside, message):
    """`beside` is the content of the codebook's file, or None where there is none."""
    written(tmp_path / "films.csv", *rows)
    if beside is not None:
        (tmp_path / "films.codebook.toml").write_text(beside, encoding="utf-8")
    with pytest.raises(ManifestError, match=message) as caught:
        read_manifest(tmp_path / "films.csv")
    assert "\n" not in str(caught.value)


def test_a_manifest_is_not_written_beside_a_codebook_that_is_not_its_own(tmp_path):
    """The manifest would be read with the wrong codebook. The file that is there stays as it was."""
    write_manifest(manifest(tmp_path), tmp_path / "films.csv")
    before = (tmp_path / "films.csv").read_bytes()

    with pytest.raises(ManifestError, match=r"films.codebook.toml"):
        write_manifest(Manifest((Clip("a", "a"),), tmp_path), tmp_path / "films.csv")
    with pytest.raises(ManifestError, match="'mobygaze'"):
        write_manifest(manifest(tmp_path, codebook=replace(VIOLENCE, name="mobygaze")), tmp_path / "x.csv")
    assert (tmp_path / "films.csv").read_bytes() == before
