"""The page on models lists the models that there are."""

import re
from dataclasses import fields
from pathlib import Path

from obygaze_features.plugins import MODELS
from obygaze_models.models import ModelSpec
from obygaze_models.models.registry import BUILTIN_MODELS

PAGE = Path(__file__).parents[2] / "docs" / "models.md"


def test_the_page_lists_the_zoos_models_in_their_order_and_every_field_of_a_spec():
    text = PAGE.read_text(encoding="utf-8")
    built_in, rest = text.split("## Your own")
    rows = [line.split("|")[1] for line in built_in.splitlines() if line.startswith("| `")]
    listed = [name for cell in rows for name in re.findall(r"`(\w+)`", cell)]
    assert listed == list(BUILTIN_MODELS)
    named = {name for cell in re.findall(r"^\| (`[^|]*) \|", rest, re.MULTILINE) for name in cell.split("`")}
    assert {field.name for field in fields(ModelSpec)} <= named
    assert f'[project.entry-points."{MODELS}"]' in text
