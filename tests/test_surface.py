"""The surface of the project is the one that is written down."""

from tests import surface


def test_there_are_as_many_commands_options_and_public_names_as_the_table_says():
    """The table tests/surface.toml has their numbers: what a newcomer may have to look through.

    Whoever adds one changes the table too, and says in the commit who asked for it.
    """
    counted_in_the_code = surface.count()
    numbers_of_the_table = surface.written()

    assert counted_in_the_code == numbers_of_the_table, "python -m tests.surface > tests/surface.toml"
