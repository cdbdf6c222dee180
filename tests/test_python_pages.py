"""The Python of pages runs as it stands, and prints what they say."""

import doctest
import inspect
import multiprocessing
import re
import shutil
import tempfile
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest

from obygaze.demo_corpus import CORRUPT, MISSING
from obygaze_features import Manifest, read_manifest
from obygaze_features.store.testing import seal_arrays
from tests.process import python

ROOT = Path(__file__).parents[1]

OTHER_LIBRARIES = ("import polars", "import duckdb", "import dask")

TRAINING_SCRIPT = """
import sys
import warnings

import numpy as np
import obygaze_features as of
from torch.utils.data import DataLoader

if __name__ == "__main__":
    warnings.simplefilter("ignore")  # of fork beside threads, from Python 3.12 on
    group = of.open_store("stores/films")["xclip"]
    y = np.where(group.usable, np.arange(len(group)), -1)
    y[:25] = -1  # these have no label
    loader = DataLoader(
        of.Pieces(group, "frames", y),
        batch_size=None,
        shuffle=True,
        num_workers=2,
        multiprocessing_context=sys.argv[1],
    )
    frames = group.frames()
    seen = []
    for X, rows in loader:
        assert np.array_equal(X.numpy(), frames[rows.numpy()])
        seen += rows.tolist()
    labelled = np.flatnonzero(y >= 0)
    assert sorted(seen) == labelled.tolist()
    print("read", len(seen), "of", len(labelled))
"""


def python_blocks(page):
    """Return what stands in a page between ```python and ```."""
    return re.findall(
        r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )


@pytest.fixture
def run_among_toy_films(tmp_path, monkeypatch, capsys):
    """A function that runs code in a folder with films.csv and stores/films-1.0.0; gives what it prints."""
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.chdir(tmp_path)
    from toy_films import write_toy_films

    write_toy_films(Path(), backbone="xclip")
    return function_that_runs_code(capsys)


@pytest.fixture
def run_after_first_hour(tmp_path, monkeypatch, capsys):
    """A function that runs code in a folder with clips.csv and stores/films-1.0.0; gives what it prints.

    They are those that a reader has after the page "Your first hour"; two of the clips have failed.
    """
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "manifests" / "demo.csv", "clips.csv")
    clips = read_manifest("clips.csv").clips
    pooled = np.load(ROOT / "tests" / "demo" / "features.npy")
    frames = np.stack([pooled - 0.1, pooled + 0.1], axis=1)
    seal_arrays(
        Path("stores", "films"),
        {clip.clip_id: clip.movie for clip in clips},
        {"descriptors": {"pooled": pooled, "frames": frames}},
        failed=dict.fromkeys((CORRUPT, MISSING), "planted"),
        spans={clip.clip_id: (clip.start_s, clip.end_s) for clip in clips},
    )
    return function_that_runs_code(capsys)


def function_that_runs_code(capsys):
    def run(code):
        exec(code, {"__name__": "__main__"})  # noqa: S102 - our own pages
        return capsys.readouterr().out

    return run


@pytest.mark.long
def test_the_twelve_lines_of_the_readme_run_on_a_store_at_a_url(run_among_toy_films):
    """The README opens a store at https://lab.example; here a server of this machine stands for it.

    After its lines, `scores` has one score for each of six films, and `run` a model called "mine".
    """
    pytest.importorskip("matplotlib")
    (code,) = python_blocks("README.md")
    lines = [line for line in code.splitlines() if line]
    assert len(lines) == 12
    assert code.count("https://lab.example") == 1

    lines = [line.replace('"https://lab.example', 'url + "') for line in lines]
    lines += ["assert len(scores) == 6", "assert min(scores) > 0.5", "assert 'mine' in run._repr_html_()"]
    script = [
        "from pathlib import Path",
        "from share_a_store import serving",
        "with serving(Path('stores')) as url:",
        *(f"    {line}" for line in lines),
    ]
    run_among_toy_films("\n".join(script))


@pytest.mark.long
@pytest.mark.nightly
def test_the_lines_of_the_readme_pass_mypys_strict_rules(tmp_path):
    """Users who check types, with our rules here, must find no error in what they copy from the README."""
    pytest.importorskip("mypy")
    (code,) = python_blocks("README.md")
    script = tmp_path / "lines.py"
    script.write_text(code, encoding="utf-8")

    result = python("-m", "mypy", "--config-file", ROOT / "pyproject.toml", script, cwd=ROOT)

    assert "Success" in result.stdout


@pytest.mark.parametrize("name", ["by_id", "codebook"])
def test_a_manifests_attributes_are_no_cached_properties(name):
    """`Group.to_frame` takes a protocol with read-only properties of these names.

    Pyright accepts a field or a plain property of `Manifest` for them, and no cached property.
    """
    attribute = inspect.getattr_static(Manifest, name, None)
    assert not isinstance(attribute, cached_property)


@pytest.mark.long
def test_the_page_for_notebooks_runs_from_top_to_bottom_after_the_first_hour(run_after_first_hour):
    """docs/python.md shows the use in notebooks, by blocks of Python on the corpus of the page first hour.

    The blocks run one after the other, after what that page does. Blocks that need a library that few people
    have (OTHER_LIBRARIES) are left out: another test runs them.

    Two lines of asserts are put behind them. There `model` is the last model of the page, a bottleneck of the
    concepts Body and Clothing, and `frame` the table of all clips but two that have failed. What the page
    prints first is the message of a store that is not there.
    """
    pytest.importorskip("xarray")
    pytest.importorskip("torch")
    blocks = [block for block in python_blocks("docs/python.md") if not block.startswith(OTHER_LIBRARIES)]
    checks = [
        "assert model.concepts_ == ('Body', 'Clothing')",
        "assert frame.attrs == {'left_out': {'failed': 2}}",
    ]

    printed = run_after_first_hour("\n".join(blocks + checks))

    assert printed.startswith("stores/nothing: no such store")


@pytest.mark.parametrize("library", ["polars", "duckdb", "dask"])
def test_the_page_for_notebooks_gives_a_group_to_another_library(library, run_after_first_hour):
    """The page's block on the library runs after those that open a group and make its table."""
    pytest.importorskip(library)
    pytest.importorskip("xarray")
    blocks = python_blocks("docs/python.md")
    open_group = blocks[:2]
    make_table = "frame = group.to_frame(of.read_manifest('clips.csv'))"
    (use_library,) = [block for block in blocks if block.startswith(f"import {library}")]

    run_after_first_hour("\n".join([*open_group, make_table, use_library]))


@pytest.mark.long
@pytest.mark.parametrize(
    "start_method",
    [
        "spawn",
        pytest.param("fork", marks=pytest.mark.nightly),
        pytest.param("forkserver", marks=pytest.mark.nightly),
    ],
)
@pytest.mark.usefixtures("run_among_toy_films")
def test_a_dataloader_of_pytorch_reads_every_labelled_clip_once_whatever_starts_its_workers(
    start_method, monkeypatch
):
    """A script reads `Pieces` of a store by two workers, in any order, and checks the frames of each row.

    70 of the clips have a label and features. Python starts workers by forking or by a new process.
    """
    pytest.importorskip("torch")
    if start_method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"{start_method} is not of this system")
    Path("train.py").write_text(TRAINING_SCRIPT, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))

    result = python("train.py", start_method, cwd=Path.cwd())

    assert "read 70 of 70" in result.stdout


@pytest.mark.long
@pytest.mark.parametrize(
    ("page", "min_examples"),
    [("models", 15), ("predict", 30), ("leak", 20), ("film-programmers", 10), ("film-compare", 15)],
)
def test_the_examples_of_a_page_print_what_it_says(page, min_examples, tmp_path, monkeypatch):
    """Examples are lines with >>>, and what stands below them is printed; there are more than so many.

    Pages on films need three corpora of toy films in the current folder.
    """
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    from toy_films import write_toy_films

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # what the page puts aside goes with the test
    if page.startswith("film-"):
        write_toy_films(Path())
        write_toy_films(Path(), "more", first=6)
        write_toy_films(Path(), "others", first=12)

    result = doctest.testfile(str(ROOT / "docs" / f"{page}.md"), module_relative=False, encoding="utf-8")

    assert result.attempted > min_examples
    assert result.failed == 0
