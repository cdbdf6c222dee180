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


def generators_in(source):
    """List what in a module's source text could generate images or texts.

    These are names, and texts without spaces such as the name of a network, that `GENERATOR` matches, and
    calls of a method `generate`. Sentences, which have spaces, may speak of generating.
    """
    calls = re.findall(r"\.generate\(", source)
    if not GENERATOR.search(source):  # most modules: no need of their tokens
        return calls

    named = []
    for token in generate_tokens(StringIO(source).readline):
        is_name_or_text = token.type in {NAME, STRING}
        is_sentence = " " in token.string
        if is_name_or_text and not is_sentence and GENERATOR.search(token.string):
            named.append(token.string)
    return named + calls


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
def test_source_text_that_could_generate_images_or_texts_is_recognised(source):
    """Such a module is out of the project's scope; `generators_in` lists what of it could generate."""
    assert generators_in(source)


@pytest.mark.parametrize(
    "source",
    [
        "import transformers",
        "rng = default_rng(0)",
        "state.generate_state(4)",
        "'no image is generated here'",
        "unclipped = 3",
    ],
    ids=[
        "a library that has generators too",
        "random numbers",
        "states of random numbers",
        "a sentence that speaks of generating",
        "a word that contains the name of a generator, unCLIP",
    ],
)
def test_source_text_that_only_resembles_a_generator_is_not_taken_for_one(source):
    """None of these can make an image or a text, so that `generators_in` lists nothing."""
    assert generators_in(source) == []


def test_no_module_of_the_project_could_generate_images_or_texts():
    """The project measures images and texts that exist. All modules of packages and benchmarks are searched.

    None may import a generator of images or texts, such as Stable Diffusion, or name one, or call `generate`.
    """
    modules = [path for folder in ("obygaze*", "benchmarks") for path in ROOT.glob(f"{folder}/**/*.py")]
    assert len(modules) > 100

    generators_of_module = {}
    for path in modules:
        generators = generators_in(path.read_text(encoding="utf-8"))
        if generators:
            generators_of_module[str(path)] = generators

    assert generators_of_module == {}


def test_no_dependency_of_the_project_is_a_generator_of_images():
    """Searched are the names of all required and optional packages, and of those with constraints.

    `GENERATOR` matches names such as diffusers. There are more than 40 names, or they would not be read.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    requirements = list(project["dependencies"])
    for requirements_of_extra in project["optional-dependencies"].values():
        requirements += requirements_of_extra
    requirements += (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert len(requirements) > 40

    name_ends = r"[<>=;\[ ]"  # where a version, a condition or an extra begins
    names = [re.split(name_ends, requirement)[0] for requirement in requirements]

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


@pytest.mark.parametrize("variant", ["code", "paper"])
def test_no_prompt_of_the_association_tests_is_about_an_age(variant):
    """The prompts are texts with which images are compared, as in the audited paper or in its code.

    The paper's experiment that generates images by age is out of the project's scope.
    """
    words_on_ages = {"girl", "boy", "teenage", "teenager", "child", "year", "years", "old", "young"}

    words_of_prompts = {word for row in prompt_rows(variant) for word in row["text"].lower().split()}

    assert not words_of_prompts & words_on_ages


def test_the_page_on_audits_says_that_generating_is_not_built():
    assert "is not built, in any form" in (DOCS / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted((ROOT / "docs/tasks").glob("*.md"))], ids=lambda page: page.stem
)
def test_a_page_of_a_task_says_that_nothing_generates_images_and_links_the_scope(page):
    text = " ".join(page.read_text(encoding="utf-8").split())
    assert "Nothing here generates images" in text
    assert "docs/audits/README.md#scope" in text or "../audits/README.md#scope" in text


def test_the_file_of_association_tests_that_docs_audits_eat_md_shows_can_be_read(tmp_path):
    """The page has one block of JSON: a file of tests of one's own, the first of which is called smiles."""
    page = (DOCS / "eat.md").read_text(encoding="utf-8")
    (shown_file,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    (tmp_path / "tests.json").write_text(shown_file, encoding="utf-8")

    first_test, *_ = read_tests(tmp_path / "tests.json")

    assert first_test.name == "smiles"
