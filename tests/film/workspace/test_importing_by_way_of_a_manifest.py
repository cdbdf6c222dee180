"""An import into a film has few options of `manifest import spans`: a refusal that advises one says where."""

import pytest

from obygaze_film.errors import FilmError
from obygaze_film.workspace.importing import read_annotations
from tests.command import obygaze

TABLES = {
    "a word for a level": (
        "movie,start_s,end_s,level,annotator\ntt1,0,8,peaceful,CD\n",
        ["--word", "peaceful=calm"],
    ),
    "headings of times": (
        "movie,from here,until,level,annotator\ntt1,0,8,calm,CD\n",
        ["--column", "start_s=from here", "--column", "end_s=until"],
    ),
}
"""What an option has to say -> a table that needs it, and the option."""


@pytest.mark.parametrize(("table", "options"), TABLES.values(), ids=TABLES)
def test_a_table_that_needs_an_option_is_imported_by_the_command_that_has_it(
    decisions, tmp_path, table, options
):
    """CD's table has a word in place of a level, or headings of its own, and `film import` has no option.

    `manifest import spans` has options for both: the refusal names that whole command, which writes own.csv,
    and own.csv can be imported.
    """
    path = tmp_path / "of-cd.csv"
    path.write_text(table, encoding="utf-8")
    own = tmp_path / "own.csv"

    with pytest.raises(FilmError, match=r"in `obygaze manifest import spans .*of-cd\.csv --out own\.csv`"):
        read_annotations(path, decisions.codebook, movie="tt1")

    book = ["--codebook", tmp_path / "violence.codebook.toml"]
    assert obygaze("manifest", "import", "spans", path, *options, *book, "--out", own) == 0
    (clip,) = read_annotations(own, decisions.codebook, movie="tt1").clips
    assert (clip.level, clip.annotator) == ("calm", "CD")
