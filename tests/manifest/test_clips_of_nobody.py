"""Two people's files of the same clips that name neither: the message says how to name them."""

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import Clip, Codebook, Concept, Level, Manifest, Scale, import_spans


def manifest_of_one_clip_by(tmp_path, *annotators):
    """Make a manifest with a row of the same clip for each annotator."""
    rows = [Clip("c", "f", "", start_s=0.0, end_s=1.0, level="S", annotator=name) for name in annotators]
    return Manifest(tuple(rows), tmp_path)


def test_the_refusal_of_two_rows_of_a_clip_without_annotators_says_where_to_name_them(tmp_path):
    """A clip has two rows, and neither says who labelled it."""
    nobody = ""
    with pytest.raises(ManifestError, match="two people labelled it, name them in a column annotator"):
        manifest_of_one_clip_by(tmp_path, nobody, nobody)


def test_where_one_annotator_has_a_clip_twice_the_message_does_not_ask_for_two_names(tmp_path):
    """A clip has two rows of AB. The message says so, and does not advise to name the two people.

    That is the advice for two rows of nobody. Here a name is there.
    """
    with pytest.raises(ManifestError, match="there twice, of AB") as refusal:
        manifest_of_one_clip_by(tmp_path, "AB", "AB")

    assert "two people" not in str(refusal.value)


def test_two_annotators_may_have_one_clip(tmp_path):
    """A clip has a row of AB and a row of CD."""
    assert len(manifest_of_one_clip_by(tmp_path, "AB", "CD")) == 2


HEADER = "clip_id,movie,start_s,end_s,level,concepts,annotator,valence\n"
MOODS = Codebook(
    "moods",
    version="1",
    levels=(Level("EN"), Level("S")),
    concepts=(Concept("Body"),),
    scales=(Scale("valence", (Level("low"), Level("high"))),),
)
"""A codebook with levels, the concept Body, and the scale valence from low to high."""


def import_rows(folder, *rows, **options):
    """Import a table for each of these rows, which stands below `HEADER`."""
    paths = []
    for number, row in enumerate(rows):
        paths.append(folder / f"{number}.csv")
        paths[-1].write_text(f"{HEADER}{row}\n")
    return import_spans(paths, folder, codebook=MOODS, **options)


def test_a_clip_without_labels_and_annotator_is_left_out_where_an_annotator_labelled_it(tmp_path):
    """Two tables have a row each of the clip c: one names nobody and has no label, the other has S of AB.

    The former is a list of clips to label. Its row is no answer of a second person.
    """
    row_of_nobody = "c,f,0,5,,,,"
    row_of_ab = "c,f,0,5,S,,AB,"

    imported = import_rows(tmp_path, row_of_nobody, row_of_ab)

    assert [clip.annotator for clip in imported.manifest] == ["AB"]


@pytest.mark.parametrize("row", ["c,f,0,5,,Body,,", "c,f,0,5,,,,high"], ids=["concepts", "a rank on a scale"])
def test_a_row_with_concepts_or_a_rank_alone_counts_as_labelled_and_needs_an_annotator(tmp_path, row):
    """Two tables have a row each of the clip c: one names nobody and has no level, the other has S of AB.

    The former has the concept Body, or "high" on the scale of valence. These are labels as a level is, so
    the row is not left out as an unlabelled one: the import is refused until its annotator is named.
    """
    with pytest.raises(ManifestError, match=r"of nobody and AB: .* two people labelled it, name them"):
        import_rows(tmp_path, row, "c,f,0,5,S,,AB,")


def test_ranks_of_a_table_that_names_nobody_are_those_of_the_annotator_who_is_given(tmp_path):
    """A table has the rank high of the clip c, on the scale of valence, of nobody. The person gives AB."""
    rank_of_nobody = "c,f,0,5,,,,high"

    imported = import_rows(tmp_path, rank_of_nobody, annotator="AB")

    assert [clip.annotator for clip in imported.manifest] == ["AB"]
