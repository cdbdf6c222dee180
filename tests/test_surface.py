"""The surface of the project is the one that is written down."""

from tests import surface


def test_the_surface_is_the_one_that_is_written_down():
    """A change of it is a line of tests/surface.toml, and its commit says who asked for it."""
    assert surface.count() == surface.written(), "python -m tests.surface prints the table of today"
