"""Write the table of all formats into docs/corpora.md: `python -m tests.manifest.spans.formats_page`."""

from pathlib import Path

from obygaze_features.manifest.spans.formats import FORMATS

PAGE = Path(__file__).parents[3] / "docs/corpora.md"
BEGIN, END = "<!-- formats -->\n", "<!-- end of formats -->\n"


def formats_table() -> str:
    """Return the table of all formats as Markdown: by what each is read, or the way out."""
    lines = ["| format | tool | read as, or the way out |", "| --- | --- | --- |"]
    for known in FORMATS:
        answer = f"**{known.kind}**" if known.kind else known.way_out
        cells = [cell.replace("|", "\\|") for cell in (known.name, known.tool, answer)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def page_with_table(page: str) -> str:
    """Return the text of the page with the table of now between its two marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, behind = rest.partition(END)
    return f"{before}{BEGIN}\n{formats_table()}\n{END}{behind}"


if __name__ == "__main__":
    PAGE.write_text(page_with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
