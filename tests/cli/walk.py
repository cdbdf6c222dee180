"""Every command and group, in the order of the contents."""

from collections.abc import Iterator

import click

from obygaze.cli import root_command


def all_commands() -> Iterator[tuple[str, click.Command, click.Context]]:
    """Yield the path, as it is typed, of the root and of everything below it."""
    root = root_command()
    waiting: list[tuple[click.Command, click.Context]] = [(root, click.Context(root, info_name="obygaze"))]
    while waiting:
        command, context = waiting.pop(0)
        yield context.command_path, command, context
        if isinstance(command, click.Group):
            names = command.list_commands(context)
            found = [(name, command.get_command(context, name)) for name in names]
            waiting += [(one, click.Context(one, info_name=name, parent=context)) for name, one in found]
