"""A table whose columns are films and whose rows are annotators is not read the other way round."""

import pytest

from obygaze_features.errors import ManifestError


@pytest.mark.parametrize(
    "table",
    [
        "annotator,film1.mp4,film2.mp4,film3.mp4\nAB,EN,S,HN\nCD,EN,S,S\n",
        "Coder,Vertigo,Psycho,Rebecca\nAB,EN,S,HN\nCD,EN,S,S\n",
        "movie,a.mp4,b.mp4\nAB,EN,S\nCD,EN,S\n",
    ],
)
def test_films_as_columns_do_not_become_annotators(import_files, table):
    """Read as `--wide film1.mp4,film2.mp4` each film would be a person, and each person a film."""
    with pytest.raises(
        ManifestError, match="seem to be of films, and rows of annotators: turn the table on its"
    ):
        import_files({"a.csv": table})


def test_columns_of_levels_in_a_table_of_films_are_proposed_as_those_of_annotators(import_files):
    """The columns AB and CD of a table of two films hold levels.

    A table that is turned on its side has films as columns. This one has them in rows, so that AB and CD are
    two annotators.
    """
    with pytest.raises(ManifestError, match=r"levels of 2 annotators \('AB', 'CD'\)"):
        import_files({"a.csv": "movie,AB,CD\nf1,EN,S\nf2,EN,S\n"})
