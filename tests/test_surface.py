"""The surface of the project is the one that is written down."""

from tests import surface

MOST = {"commands": 96, "options": 611}
"""Of the whole command line: what a newcomer may have to look through. It rises by what an issue names."""


def test_the_surface_is_the_one_that_is_written_down():
    """A change of it is a line of tests/surface.toml, and its commit says who asked for it."""
    assert surface.count() == surface.written(), "python -m tests.surface prints the table of today"


def test_the_command_line_is_no_larger_than_was_agreed():
    table = surface.written()
    sums = {kind: sum(table[kind].values()) for kind in MOST}
    grown = {kind: n for kind, n in sums.items() if n > MOST[kind]}
    assert grown == {}, "an issue that asks for more is named in the commit, and MOST rises with it"
