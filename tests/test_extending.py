"""The package of docs/extending.md, installed from the page, adds one of each; the page lists every group."""

import ast
import json
import os
import re
import sys
import tomllib
from configparser import ConfigParser
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from obygaze_features import plugins
from obygaze_features.store import open_store
from obygaze_film.exchange.registry import collect
from obygaze_models.evaluation.evaluate import evaluate
from tests import lab_package
from tests.film.films import scored_film
from tests.film.saying import heading_of
from tests.planted_models import make_shelf
from tests.process import python

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
(PYPROJECT,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
POINTS = tomllib.loads(PYPROJECT)["project"]["entry-points"]
MODULES = {
    block.partition("\n")[0].removeprefix("# "): block
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
}
"""The page's modules, by the path in their first line."""


def documented_groups():
    """Return the groups of `plugins.py` with their docstrings, as they stand there."""
    body = ast.parse(Path(plugins.__file__).read_text(encoding="utf-8")).body
    groups = {}
    for statement, following in pairwise(body):
        if isinstance(statement, ast.AnnAssign) and isinstance(following, ast.Expr):
            groups[ast.literal_eval(statement.value)] = ast.literal_eval(following.value)
    return groups


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder with the page's package `lab` and its metadata, as pip would install it."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "lab").mkdir()
    for path, source in MODULES.items():
        (folder / path).write_text(source, encoding="utf-8")
    lines = []
    for group, objects in POINTS.items():
        lines.append(f"[{group}]")
        lines += [f"{name} = {place}" for name, place in objects.items()]
    lab_package.describe(folder, "lab", "\n".join(lines))
    return folder


@pytest.fixture
def obygaze(site, tmp_path):
    """Run a command in an empty folder, as a user who has installed the package; gives what it printed."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(site)])}

    def run(*words):
        return python("-m", "obygaze", *words, cwd=tmp_path, env=environment).stdout

    return run


@pytest.fixture
def installed(site, monkeypatch):
    """Have the package in this process, for what a script does."""
    monkeypatch.syspath_prepend(str(site))
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "lab"]:
        del sys.modules[name]


@pytest.mark.long
def test_pip_installs_the_folder_that_the_page_describes(tmp_path):
    pytest.importorskip("setuptools")
    source = tmp_path / "source"
    (source / "lab").mkdir(parents=True)
    (source / "pyproject.toml").write_text(PYPROJECT, encoding="utf-8")
    for path, text in MODULES.items():
        (source / path).write_text(text, encoding="utf-8")
    python("-m", "pip", "install", "--no-deps", "--no-build-isolation", "--no-index", "--target",
           tmp_path / "site", source)  # fmt: skip
    (metadata,) = (tmp_path / "site").glob("lab-0.1.dist-info/entry_points.txt")
    installed = ConfigParser(delimiters="=")
    installed.read(metadata)
    assert {group: dict(installed[group]) for group in installed.sections()} == POINTS
    modules = {path.relative_to(tmp_path / "site") for path in (tmp_path / "site/lab").glob("*.py")}
    assert modules == {Path(path) for path in MODULES}


def test_the_page_explains_every_group_in_the_words_of_the_code():
    groups = documented_groups()
    assert {*groups} == {*POINTS} == {*re.findall(r"^## \w+: `(.+)`$", PAGE, re.MULTILINE)}
    for group, docstring in groups.items():
        section = PAGE.partition(f": `{group}`\n")[2].partition("\n## ")[0]
        assert " ".join(docstring.split()) in " ".join(section.split())


def test_no_other_module_names_a_group():
    packages = ("obygaze", "obygaze_features", "obygaze_models", "obygaze_film", "obygaze_studies")
    for path in (path for package in packages for path in (ROOT / package).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        assert path.name == "plugins.py" or not any(f'"{group}"' in text for group in POINTS), path


@pytest.mark.long
def test_a_backbone_and_a_decoder_extract_features(obygaze, tmp_path):
    np.save(tmp_path / "a.npy", np.full((20, 48, 64, 3), 90, np.uint8))
    (tmp_path / "films.csv").write_text(
        "clip_id,movie,video,start_s,end_s,level,concepts,annotator\na-0,a,a.npy,,,,,\n"
    )
    obygaze("extract", "films.csv", "store", "--backbone", "lab-brightness", "--decoder", "lab-arrays",
            "--workers", 1, "--licence", "CC0-1.0")  # fmt: skip
    assert "nothing wrong" in obygaze("store", "verify", "store-1.0.0", "--full")
    group = open_store(tmp_path / "store-1.0.0")["lab-brightness"]
    assert group.pooled().tolist() == [[90, 90, 90]]
    assert group.provenance["decoder"]["name"] == "lab-arrays"


@pytest.mark.long
def test_an_importer_reads_its_files(obygaze, tmp_path):
    (tmp_path / "a.log").write_text("LAB LOG\n0.5 2 S\nthe reel was changed here\n2 4.25 HN\n")
    obygaze("manifest", "import", "spans", "a.log", "--movie", "a", "--out", "spans.csv")
    columns = [line.split(",") for line in (tmp_path / "spans.csv").read_text().splitlines()]
    assert "vtt, xmeml, lab-log." in " ".join(
        obygaze("manifest", "import", "spans", "--help").replace("lab-\n", "lab-").split()
    )
    times = [(row[3], row[4], row[5]) for row in columns]
    assert times == [("start_s", "end_s", "level"), ("0.5", "2.0", "S"), ("2.0", "4.25", "HN")]


@pytest.mark.long
@pytest.mark.usefixtures("installed")
def test_a_model_and_a_metric_are_in_the_tables_of_a_run(make_planted):
    run = evaluate(make_planted(direction=3.0), ["lab-nearest"], "hn_s")
    values = run.metrics.set_index(["model", "metric"])["pooled"]
    assert values["lab-nearest", "within_movie_auc"] > 0.9
    assert values["always_positive", "lab-recall"] == 1
    assert values["always_negative", "lab-recall"] == 0


@pytest.mark.long
def test_an_exporter_writes_a_scored_film(obygaze, tmp_path):
    folder, film = scored_film(tmp_path, make_shelf(tmp_path / "models", ["pcbm_lr"]))
    obygaze("film", "export", folder, "--as", "lab-list", "--out", "passages.txt")
    heading, *lines = (tmp_path / "passages.txt").read_text().splitlines()
    assert heading == heading_of(film)
    caveats = collect(film, "srt").caveats
    assert lines[: len(caveats)] == [*caveats]
    passages = lines[len(caveats) :]
    assert len(passages) == len(film.segments(top=0)) > 0


@pytest.mark.long
def test_an_audit_is_a_command_with_its_files(obygaze, tmp_path):
    (tmp_path / "captions.csv").write_text("image_id,caption\na,a cat\nb,a sleeping cat\n")
    obygaze("audit", "lab-longest", "--captions", "captions.csv", "--out", "longest.csv")
    assert (tmp_path / "longest.csv").read_text() == "image_id,caption\nb,a sleeping cat\n"
    assert json.loads((tmp_path / "longest.json").read_text())["record"]["audit"] == "lab-longest"
    assert "Find the longest caption." in obygaze("audit", "--help")
