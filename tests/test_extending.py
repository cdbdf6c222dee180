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
from tests.files import rows_of
from tests.film.films import scored_film
from tests.film.saying import heading_of
from tests.planted_models import train_and_save_models
from tests.process import python

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
(PYPROJECT,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
OBJECTS_OF_GROUP = tomllib.loads(PYPROJECT)["project"]["entry-points"]
"""Group of entry points, such as "obygaze.models" -> the name of each object there -> where it is."""
MODULES_OF_PAGE = {
    block.partition("\n")[0].removeprefix("# "): block
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
}
"""Path of a module of the page's package, which stands in its first line -> its source."""


def documented_groups():
    """Read the groups of entry points in the source of `plugins.py`: group -> docstring of its constant."""
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
    for path, source in MODULES_OF_PAGE.items():
        (folder / path).write_text(source, encoding="utf-8")
    lines = []
    for group, objects in OBJECTS_OF_GROUP.items():
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
def lab_is_installed(site, monkeypatch):
    """Have the page's package `lab` in this process, for what a script does."""
    monkeypatch.syspath_prepend(str(site))
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "lab"]:
        del sys.modules[name]


@pytest.mark.long
def test_pip_installs_the_folder_that_the_page_describes(tmp_path):
    """The page shows a pyproject.toml with entry points, and the modules of a package `lab`."""
    pytest.importorskip("setuptools")
    source, site = tmp_path / "source", tmp_path / "site"
    (source / "lab").mkdir(parents=True)
    (source / "pyproject.toml").write_text(PYPROJECT, encoding="utf-8")
    for path, text in MODULES_OF_PAGE.items():
        (source / path).write_text(text, encoding="utf-8")

    options = ("--no-deps", "--no-build-isolation", "--no-index")
    python("-m", "pip", "install", *options, "--target", site, source)

    (metadata,) = site.glob("lab-0.1.dist-info/entry_points.txt")
    entry_points = ConfigParser(delimiters="=")
    entry_points.read(metadata)
    assert {group: dict(entry_points[group]) for group in entry_points.sections()} == OBJECTS_OF_GROUP
    installed_modules = {path.relative_to(site).as_posix() for path in (site / "lab").glob("*.py")}
    assert installed_modules == set(MODULES_OF_PAGE)


def test_the_page_has_a_section_and_an_example_for_each_group_of_entry_points():
    """A group is where a package lists what it adds; `plugins.py` names them all."""
    groups_of_code = set(documented_groups())
    groups_of_sections = set(re.findall(r"^## \w+: `(.+)`$", PAGE, re.MULTILINE))
    groups_of_example = set(OBJECTS_OF_GROUP)

    assert groups_of_sections == groups_of_code
    assert groups_of_example == groups_of_code


def section_on(group):
    """Return the section of docs/extending.md whose heading names a group: "## Models: `obygaze.models`"."""
    end_of_heading = f": `{group}`\n"
    _, _, from_section_on = PAGE.partition(end_of_heading)
    section, _, _ = from_section_on.partition("\n## ")
    return section


def in_one_line(text):
    """Replace all breaks of lines and rows of blanks by single blanks."""
    return " ".join(text.split())


def test_docs_extending_explains_every_group_of_entry_points_by_its_docstring_in_plugins_py():
    """A group, such as `obygaze.models`, is a constant of obygaze_features/plugins.py with a docstring.

    The section of docs/extending.md on the group has the same words, which may be broken into other lines.
    """
    for group, docstring in documented_groups().items():
        assert in_one_line(docstring) in in_one_line(section_on(group))


def test_no_module_but_plugins_names_a_group_of_entry_points():
    """`plugins.py` is the one place where to look what can be added."""
    for package in ("obygaze", "obygaze_features", "obygaze_models", "obygaze_film", "obygaze_studies"):
        for path in (ROOT / package).rglob("*.py"):
            source = path.read_text(encoding="utf-8")
            groups_named = [group for group in OBJECTS_OF_GROUP if f'"{group}"' in source]
            assert path.name == "plugins.py" or groups_named == [], path


@pytest.mark.long
def test_a_backbone_and_a_decoder_of_a_lab_extract_features(obygaze, tmp_path):
    """The decoder reads arrays of numpy as videos; the backbone gives the mean of each colour, here 90."""
    np.save(tmp_path / "a.npy", np.full((20, 48, 64, 3), 90, np.uint8))
    manifest = "clip_id,movie,video,start_s,end_s,level,concepts,annotator\na-0,a,a.npy,,,,,\n"
    (tmp_path / "films.csv").write_text(manifest)

    obygaze("extract", "films.csv", "store", "--backbone", "lab-brightness", "--decoder", "lab-arrays",
            "--workers", 1, "--licence", "CC0-1.0")  # fmt: skip

    assert "nothing wrong" in obygaze("store", "verify", "store-1.0.0", "--full")
    group = open_store(tmp_path / "store-1.0.0")["lab-brightness"]
    assert group.pooled().tolist() == [[90, 90, 90]]
    assert group.provenance["decoder"]["name"] == "lab-arrays"


@pytest.mark.long
def test_an_importer_of_a_lab_reads_the_spans_of_its_files(obygaze, tmp_path):
    """A line of the lab's log is a start, an end and a level; the third line is no span."""
    (tmp_path / "a.log").write_text("LAB LOG\n0.5 2 S\nthe reel was changed here\n2 4.25 HN\n")

    obygaze("manifest", "import", "spans", "a.log", "--movie", "a", "--out", "spans.csv")

    first, second = rows_of(tmp_path / "spans.csv")
    assert (first["start_s"], first["end_s"], first["level"]) == ("0.5", "2.0", "S")
    assert (second["start_s"], second["end_s"], second["level"]) == ("2.0", "4.25", "HN")


@pytest.mark.long
def test_spans_of_a_lab_that_begin_after_an_hour_are_imported(obygaze, tmp_path):
    """The importer of the lab's package reads a.log: a line is a start and an end in seconds, and a level.

    The one span begins after 3700 s. The import remarks that no span is in the first hour, as the time code
    may not begin at 0; the remark must also work for kinds of files that a lab has added.
    """
    (tmp_path / "a.log").write_text("LAB LOG\n3700 3705 S\n")

    obygaze("manifest", "import", "spans", "a.log", "--movie", "a", "--out", "spans.csv")

    (clip,) = rows_of(tmp_path / "spans.csv")
    assert (clip["start_s"], clip["end_s"], clip["level"]) == ("3700.0", "3705.0", "S")


@pytest.mark.long
def test_the_help_of_imports_lists_the_importer_of_a_lab_behind_ours(obygaze):
    """The lab's package is installed, with the importer `lab-log`. The list ends with ours, vtt and xmeml.

    The help text may break a line behind a hyphen.
    """
    help_text = obygaze("manifest", "import", "spans", "--help")

    in_one_line = " ".join(help_text.replace("lab-\n", "lab-").split())
    assert "vtt, xmeml, lab-log." in in_one_line


@pytest.mark.long
@pytest.mark.usefixtures("lab_is_installed")
def test_a_model_and_a_metric_of_a_lab_are_in_the_tables_of_a_run(make_synthetic_data):
    """The features know the label. `lab-recall` is the share of positive clips that are called so."""
    data = make_synthetic_data(direction=3.0)

    run = evaluate(data, ["lab-nearest"], "hn_s")

    values = run.metrics.set_index(["model", "metric"])["pooled"]
    assert values["lab-nearest", "within_movie_auc"] > 0.9
    assert values["always_positive", "lab-recall"] == 1
    assert values["always_negative", "lab-recall"] == 0


@pytest.mark.long
def test_an_exporter_of_a_lab_writes_a_scored_film(obygaze, tmp_path):
    """The package `lab` of docs/extending.md, installed for these tests, offers the exporter `lab-list`.

    `film export --as lab-list` calls it with a scored film. The file has a heading, the film's caveats, the
    same as in any other export, such as subtitles (srt), and a line for each passage that the model marks.
    """
    folder, film = scored_film(tmp_path, train_and_save_models(tmp_path / "models", ["pcbm_lr"]))

    obygaze("film", "export", folder, "--as", "lab-list", "--out", "passages.txt")

    heading, *lines = (tmp_path / "passages.txt").read_text().splitlines()
    assert heading == heading_of(film)
    caveats = list(collect(film, "srt").caveats)
    assert lines[: len(caveats)] == caveats
    all_passages = film.segments(top=0)  # 0: not only the strongest ones
    n_passages = len(all_passages)
    assert n_passages > 0
    assert len(lines) == len(caveats) + n_passages


@pytest.mark.long
def test_an_audit_of_a_lab_is_a_command_that_writes_a_table_and_a_record(obygaze, tmp_path):
    """The audit finds the longest of two captions."""
    (tmp_path / "captions.csv").write_text("image_id,caption\na,a cat\nb,a sleeping cat\n")

    obygaze("audit", "lab-longest", "--captions", "captions.csv", "--out", "longest.csv")

    assert (tmp_path / "longest.csv").read_text() == "image_id,caption\nb,a sleeping cat\n"
    assert json.loads((tmp_path / "longest.json").read_text())["record"]["audit"] == "lab-longest"
    assert "Find the longest caption." in obygaze("audit", "--help")
