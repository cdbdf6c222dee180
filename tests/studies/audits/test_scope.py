"""Nothing here generates: no dependency, no import and no call that could; the docs say so."""

import re
import subprocess
import sys
import tomllib
from io import StringIO
from pathlib import Path
from tokenize import NAME, STRING, generate_tokens

import pytest

from obygaze_studies.eat_stimuli import prompt_rows, read_tests

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs/audits"
NETWORKS = {"torch", "torchvision", "transformers", "diffusers", "tensorflow", "jax", "onnxruntime"}

GENERATOR = re.compile(
    r"diffus|dall[_-]?e\b|dalle|imagen\b|midjourney|unclip(?!ped)|vq_?gan|style_?gan|big_?gan|glide|craiyon|"
    r"te?xt_?(to|2)_?im(age|g)|im(age|g)_?(to|2)_?im(age|g)|image_?gen|nsfw|safety_?checker",
    re.IGNORECASE,
)
"""Names of what makes images, or judges them as the paper's experiment did."""


def generators(source):
    """Name what in a module could generate: names, texts without spaces, calls of `generate`."""
    called = re.findall(r"\.generate\(", source)
    if not GENERATOR.search(source):  # most modules: no need of their tokens
        return called
    tokens = [one for one in generate_tokens(StringIO(source).readline) if one.type in {NAME, STRING}]
    return [one.string for one in tokens if " " not in one.string and GENERATOR.search(one.string)] + called


@pytest.mark.parametrize(
    "source",
    [
        "import diffusers",
        "from transformers import Pix2StructText2Image",
        "import transformers\ntransformers.StableDiffusion()",
        "import importlib\nimportlib.import_module('diffusers')",
        "load('CompVis/stable-diffusion-v1-4')",
        "model.generate(ids)",
        "from nsfw_detector import predict",
    ],
)
def test_the_guard_sees_a_generator(source):
    """Such a module could make images or texts, which is out of the project's scope."""
    assert generators(source)


def test_the_guard_passes_what_only_measures():
    code = "import transformers\nrng = default_rng(0)\nstate.generate_state(4)\n'no image is generated here'"
    assert generators(code) == []
    assert generators("unclipped = 3") == []


def test_no_module_imports_names_or_calls_a_generator():
    modules = [path for folder in ("obygaze*", "benchmarks") for path in ROOT.glob(f"{folder}/**/*.py")]
    assert len(modules) > 100
    result = {str(path): generators(path.read_text(encoding="utf-8")) for path in modules}
    assert {path: names for path, names in result.items() if names} == {}


def test_no_dependency_is_a_generator():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    requirements = sum(project["optional-dependencies"].values(), project["dependencies"])
    requirements += (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert len(requirements) > 40
    names = [re.split(r"[<>=;\[ ]", requirement)[0] for requirement in requirements]
    assert [name for name in names if GENERATOR.search(name)] == []


IMPORT_ALL_AUDITS = """
import importlib, pkgutil, sys
import obygaze_studies

AUDITS = ("audit", ".eat", "gender_score", "mediaeval", "words", "alpha")
for module in pkgutil.walk_packages(obygaze_studies.__path__, "obygaze_studies."):
    if any(part in module.name for part in AUDITS) and "language_model" not in module.name:
        importlib.import_module(module.name)
print(*sys.modules)
"""


@pytest.mark.long
def test_importing_the_audits_loads_no_library_of_networks():
    """They are imported in a process of their own, where nothing else has loaded one.

    The module of language models is left out, as it needs a network.
    """
    process = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL_AUDITS], capture_output=True, text=True, check=True
    )
    modules = set(process.stdout.split())
    packages = {module.split(".")[0] for module in modules}

    assert {"obygaze_studies.eat", "obygaze_studies.mediaeval15.training"} <= modules
    assert not packages & NETWORKS


def test_no_prompt_is_about_an_age():
    for variant in ("code", "paper"):
        words = {word for row in prompt_rows(variant) for word in row["text"].lower().split()}
        assert not words & {"girl", "boy", "teenage", "teenager", "child", "year", "years", "old", "young"}


def test_the_page_on_audits_says_that_generating_is_not_built():
    assert "is not built, in any form" in (DOCS / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted((ROOT / "docs/tasks").glob("*.md"))], ids=lambda page: page.stem
)
def test_a_page_of_a_task_says_that_nothing_generates_images_and_links_the_scope(page):
    text = " ".join(page.read_text(encoding="utf-8").split())
    assert "Nothing here generates images" in text
    assert "docs/audits/README.md#scope" in text or "../audits/README.md#scope" in text


def test_the_file_of_tests_that_docs_audits_eat_md_shows_can_be_read(tmp_path):
    text = (DOCS / "eat.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    (tmp_path / "tests.json").write_text(shown, encoding="utf-8")
    assert read_tests(tmp_path / "tests.json")[0].name == "smiles"
