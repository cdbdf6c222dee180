"""The surface of the project is the one that is written down."""

from tests import surface


def test_the_surface_is_the_one_that_is_written_down():
    """What a newcomer may have to look through grows by a line of tests/surface.toml.

    The commit that changes it says who asked for it.
    """
    assert surface.count() == surface.written(), "python -m tests.surface > tests/surface.toml writes it anew"
