"""docs/models.md lists the models that there are, and tells how to add one's own."""

import re
from dataclasses import fields
from pathlib import Path

from obygaze_features.plugins import MODELS as ENTRY_POINT_GROUP
from obygaze_models.models import ModelSpec
from obygaze_models.models.registry import BUILTIN_MODELS

MODELS_PAGE = Path(__file__).parents[2] / "docs" / "models.md"


def names_in_tables(text):
    """List the names in the first cells of tables, which are in backticks."""
    names = []
    for line in text.splitlines():
        if line.startswith("| `"):
            first_cell = line.split("|")[1]
            names += re.findall(r"`(\w+)`", first_cell)
    return names


def test_docs_models_md_lists_the_built_in_models_in_their_order():
    """The page has tables of the built-in models, and then a chapter on how to add your own."""
    page = MODELS_PAGE.read_text(encoding="utf-8")
    built_in, _your_own = page.split("## Your own")

    assert names_in_tables(built_in) == list(BUILTIN_MODELS)


def test_docs_models_md_describes_every_field_of_a_spec():
    """A model of one's own is described by a ModelSpec; the chapter "Your own" has a table of its fields."""
    page = MODELS_PAGE.read_text(encoding="utf-8")
    _built_in, your_own = page.split("## Your own")

    names_of_fields = {field.name for field in fields(ModelSpec)}
    assert names_of_fields <= set(names_in_tables(your_own))


def test_docs_models_md_names_the_entry_point_of_plugins():
    """Packages with models of their own name this group in their pyproject.toml, to be found by us."""
    page = MODELS_PAGE.read_text(encoding="utf-8")
    _built_in, your_own = page.split("## Your own")

    assert f'[project.entry-points."{ENTRY_POINT_GROUP}"]' in your_own
