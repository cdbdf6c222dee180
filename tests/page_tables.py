"""Write the tables of docs/ that follow from the code: `python -m tests.page_tables`.

Each table stands on its page between two marks, comments that name it. `test_page_tables.py` fails if a page
has another table than that of now.
"""

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from obygaze_features.backbones.weights import TABLES as TABLES_OF_NETWORKS
from obygaze_features.manifest.spans.formats import FORMATS
from obygaze_features.manifest.spans.span_file import KINDS
from obygaze_film.commands.film_output import FORMATS as EXPORTS
from obygaze_models.evaluation.metrics import LEVEL_METRICS, METRICS, Metric

BACKBONES = TABLES_OF_NETWORKS["backbones"]
DOCS = Path(__file__).parents[1] / "docs"


class PageTable(NamedTuple):
    """A table or list of a page: the file in docs/, the name in its marks, and what makes its Markdown."""

    page: str
    name: str
    markdown: Callable[[], str]


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table as Markdown, given the cells of its rows."""
    lines = [f"| {' | '.join(header)} |", f"| {' | '.join('---' for _ in header)} |"]
    for row in rows:
        cells = [cell.replace("|", "\\|") + " " if cell else "" for cell in row]
        lines.append(f"| {'| '.join(cells)}|")
    return "\n".join(lines) + "\n"


def formats_table() -> str:
    """List all formats of files with spans: by what each is read, or the way out."""
    rows = []
    for known in FORMATS:
        answer = f"**{known.kind}**" if known.kind else known.way_out
        rows.append((known.name, known.tool, answer))
    return markdown_table(("format", "tool", "read as, or the way out"), rows)


def kinds_list() -> str:
    """List the kinds of files with spans: what each needs and loses, and a sample."""
    items = []
    for kind, facts in sorted(KINDS.items()):
        notes = textwrap.indent(facts["notes"], "  ").strip()
        sample = textwrap.indent(facts["sample"], " " * 6)
        items.append(f"- **{kind}**: {notes}\n\n{sample}")
    return "\n".join(items)


def metrics_table(metrics: Mapping[str, Metric]) -> str:
    """List metrics: names in files and in tables, what each is, and its chance level."""
    rows = []
    for name, metric in metrics.items():
        rows.append((f"`{name}`", metric.title, metric.meaning, metric.chance_meaning))
    return markdown_table(("name", "in tables", "what it is", "chance level"), rows)


def exports_table() -> str:
    """List the formats that scored films are exported in: what each is for, and what it cannot hold."""
    rows = []
    for name, facts in EXPORTS.items():
        rows.append((f"`{name}`", facts["about"], facts["loses"]))
    return markdown_table(("`--as`", "for", "what the format loses"), rows)


def backbones_table(reads: str, columns: Mapping[str, str]) -> str:
    """List the backbones that read frames, or sound.

    Parameters
    ----------
    reads
        What they read, as networks.toml says it: `frames` or `sound`.
    columns
        Header of a column -> the key of its words in networks.toml.
    """
    rows = []
    for name, facts in BACKBONES.items():
        if facts.get("reads", "frames") == reads:
            rows.append((f"`{name}`", *(facts.get(key, "") for key in columns.values())))
    return markdown_table(("name", *columns), rows)


WORDS_OF_ARRAYS = {"`frames`": "frames", "`pooled`": "pooled"}
WORDS_OF_SOUND = {"network": "about", **WORDS_OF_ARRAYS}
WORDS_OF_FRAMES = {
    "network": "about",
    "frames per clip": "n_frames",
    **WORDS_OF_ARRAYS,
    "`tokens`": "tokens",
}

TABLES = (
    PageTable("corpora.md", "formats", formats_table),
    PageTable("corpora.md", "kinds", kinds_list),
    PageTable("evaluation.md", "metrics", lambda: metrics_table(METRICS)),
    PageTable("evaluation.md", "metrics of levels", lambda: metrics_table(LEVEL_METRICS)),
    PageTable("film-page.md", "exports", exports_table),
    PageTable("backbones.md", "backbones", lambda: backbones_table("frames", WORDS_OF_FRAMES)),
    PageTable("backbones.md", "backbones of sound", lambda: backbones_table("sound", WORDS_OF_SOUND)),
)


def page_with_table(page: str, table: PageTable) -> str:
    """Return the text of a page with the table of now between the table's two marks."""
    begin, end = f"<!-- {table.name} -->\n", f"<!-- end of {table.name} -->\n"
    before, _, rest = page.partition(begin)
    _, _, behind = rest.partition(end)
    return f"{before}{begin}\n{table.markdown()}\n{end}{behind}"


def write_tables() -> None:
    """Write all tables into their pages."""
    for table in TABLES:
        path = DOCS / table.page
        path.write_text(page_with_table(path.read_text(encoding="utf-8"), table), encoding="utf-8")


if __name__ == "__main__":
    write_tables()
