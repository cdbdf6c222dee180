"""The audits read and count; they generate nothing, and load nothing that could."""

import re
import subprocess
import sys
from pathlib import Path

from obygaze_models.audits.eat_tests import read_tests
from obygaze_models.audits.prompts import Variant, prompt_rows

DOCS = Path(__file__).parents[2] / "docs/audits"
GENERATORS = {"torch", "transformers", "diffusers", "tensorflow", "jax", "onnxruntime"}


def test_no_audit_loads_a_network():
    code = (
        "import pkgutil, importlib, sys, obygaze_models.audits as a, obygaze_models.commands as c\n"
        "for p in (a, c):\n"
        "    for m in pkgutil.iter_modules(p.__path__, p.__name__ + '.'):\n"
        "        if p is a or 'audit' in m.name: importlib.import_module(m.name)\n"
        "print(*sorted({m.split('.')[0] for m in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "obygaze_models" in loaded
    assert not loaded & GENERATORS


def test_no_prompt_is_about_an_age():
    for variant in Variant:
        words = {word for row in prompt_rows(variant) for word in row["text"].lower().split()}
        assert not words & {"girl", "boy", "teenage", "teenager", "child", "year", "years", "old", "young"}


def test_the_docs_repeat_the_guard_and_show_tests_that_can_be_read(tmp_path):
    assert "is not built, in any form" in (DOCS / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```json\n(.*?)```", (DOCS / "eat.md").read_text(encoding="utf-8"), re.DOTALL)
    for block in blocks:
        path = tmp_path / "tests.json"
        path.write_text(block, encoding="utf-8")
        assert read_tests(path)[0].name == "smiles"
    assert len(blocks) == 1
