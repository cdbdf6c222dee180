"""Write a model's page, `model.md.jinja`: how well and on whom it fails, what it must not be used for."""

from importlib.resources import files

from obygaze_models.persistence.model_file import ModelFile
from obygaze_models.persistence.zoo_list import Entry

TITLES = {
    "within_movie_auc": "AUC within a film",
    "average_precision": "average precision",
    "qwk": "quadratic weighted kappa",
}
"""Metrics of a list in words."""


def model_page(entry: Entry, file: ModelFile, notes: str = "", where: str = "") -> str:
    """Write a model's page as Markdown, with the front matter that the Hub reads.

    Parameters
    ----------
    entry : Entry
        Of the list that it is in.
    file : ModelFile
    notes : str
        What its makers say of it, as Markdown: the first thing on the page.
    where : str
        Of a model that is in no list, its file.
    """
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415 - reading models needs no templates

    markdown = Environment(  # noqa: S701 - Markdown, which is no HTML
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    markdown.filters["number"] = lambda value: "" if value is None else f"{value:.3f}"
    template = files("obygaze_models.persistence").joinpath("model.md.jinja").read_text("utf-8")
    return markdown.from_string(template).render(
        entry=entry,
        card=file.card,
        reach=file.about.get("reach_distances"),
        notes=notes.strip(),
        where=where,
        titles=TITLES,
        sides=" against ".join(" or ".join(side) for side in file.card.target["classes"][::-1]),
    )
