"""Reports for a terminal: tables too wide for it are cut into several that repeat their first columns."""

from tabulate import tabulate

from obygaze_models.report.report import Block, Report

WIDTH = 80


def plain(report: Report, width: int = WIDTH) -> str:
    """Write a report as text; its files say the same in one table each."""
    lines = [report.title, *(f"  {note}" for note in report.notes)]
    for block in report.blocks:
        lines += ["", block.title, *(f"  {note}" for note in block.notes)]
        lines += ["\n\n".join(tables(block, width))]
    return "\n".join(lines) + "\n"


def tables(block: Block, width: int = WIDTH) -> list[str]:
    """Lay out a block as tables at most `width` wide, if one column beside the first ones is no wider."""
    kept = _columns_that_name(block)
    columns = zip(block.headers, *block.rows, strict=True)
    # tabulate leaves two columns beside a heading.
    widths = [max(len(heading) + 2, *map(len, cells), 0) for heading, *cells in columns]
    named = sum(widths[column] + 2 for column in range(kept))
    groups: list[list[int]] = [[]]
    room = width - named
    for column in range(kept, len(widths)):
        if groups[-1] and widths[column] > room:
            groups.append([])
            room = width - named
        groups[-1].append(column)
        room -= widths[column] + 2
    return [_table(block, [*range(kept), *group]) for group in groups]


def _columns_that_name(block: Block) -> int:
    """Count the first columns without which two rows would look alike."""
    for kept in range(1, len(block.headers)):
        if len({row[:kept] for row in block.rows}) == len(block.rows):
            return kept
    return 1


def _table(block: Block, columns: list[int]) -> str:
    rows = [[row[column] for column in columns] for row in block.rows]
    headers = [block.headers[column] for column in columns]
    return tabulate(rows, headers, tablefmt="simple", disable_numparse=True)
