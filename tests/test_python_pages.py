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

LOADER = """
import sys
import warnings

import numpy as np
import obygaze_features as of
from torch.utils.data import DataLoader

if __name__ == "__main__":
    warnings.simplefilter("ignore")  # of fork beside threads, from Python 3.12 on
    group = of.open_store("stores/films")["xclip"]
    y = np.where(group.usable, np.arange(len(group)), -1)
    y[:25] = -1
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


def blocks(page):
    return re.findall(
        r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )


@pytest.fixture
def notebook(tmp_path, monkeypatch, capsys):
    """Stand in a folder with films.csv and stores/films-1.0.0; gives what runs code."""
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.chdir(tmp_path)
    from toy_films import write_toy_films

    write_toy_films(Path(), backbone="xclip")
    return runner(capsys)


@pytest.fixture
def first_hour(tmp_path, monkeypatch, capsys):
    """Stand in the folder of the first hour, with clips.csv and stores/films-1.0.0; gives what runs code."""
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
    return runner(capsys)


def runner(capsys):
    def run(code):
        exec(code, {"__name__": "__main__"})  # noqa: S102 - our own pages
        return capsys.readouterr().out

    return run


@pytest.mark.long
def test_the_twelve_lines_of_the_readme_run_on_a_store_at_a_url(notebook):
    pytest.importorskip("matplotlib")
    (code,) = blocks("README.md")
    assert len([line for line in code.splitlines() if line]) == 12
    assert code.count("https://lab.example") == 1
    served = code.replace('"https://lab.example', 'url + "')
    check = "assert len(scores) == 6 and min(scores) > 0.5 and 'mine' in run._repr_html_()"
    body = "\n".join(f"    {line}" for line in [*served.splitlines(), check])
    before = "from share_a_store import serving\nfrom pathlib import Path\n"
    notebook(f"{before}with serving(Path('stores')) as url:\n{body}")


@pytest.mark.long
@pytest.mark.nightly
def test_the_lines_of_the_readme_pass_mypys_strict_rules(tmp_path):
    pytest.importorskip("mypy")
    (code,) = blocks("README.md")
    (tmp_path / "lines.py").write_text(code, encoding="utf-8")
    checked = python(
        "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), str(tmp_path / "lines.py"), cwd=ROOT
    )
    assert "Success" in checked.stdout


@pytest.mark.parametrize("name", ["by_id", "codebook"])
def test_a_manifests_attributes_are_no_cached_properties(name):
    """`Group.to_frame` takes a protocol with read-only properties of these names.

    Pyright accepts a field or a plain property of `Manifest` for them, and no cached property.
    """
    attribute = inspect.getattr_static(Manifest, name, None)

    assert not isinstance(attribute, cached_property)


@pytest.mark.long
def test_the_page_for_notebooks_runs_from_top_to_bottom_in_the_folder_of_the_first_hour(first_hour):
    pytest.importorskip("xarray")
    pytest.importorskip("torch")
    code = [block for block in blocks("docs/python.md") if not block.startswith(OTHER_LIBRARIES)]
    checks = (
        "assert model.concepts_ == ('Body', 'Clothing')",
        "assert frame.attrs == {'left_out': {'failed': 2}}",
    )

    printed = first_hour("\n".join([*code, *checks]))

    assert printed.startswith("stores/nothing: no such store")


@pytest.mark.parametrize("library", ["polars", "duckdb", "dask"])
def test_other_libraries_take_what_a_group_gives(library, first_hour):
    pytest.importorskip(library)
    pytest.importorskip("xarray")
    (code,) = [block for block in blocks("docs/python.md") if block.startswith(f"import {library}")]
    opened = blocks("docs/python.md")[:2]
    table = "frame = group.to_frame(of.read_manifest('clips.csv'))"
    first_hour("\n".join([*opened, table, code]))


@pytest.mark.long
@pytest.mark.parametrize(
    "start_method",
    [
        "spawn",
        pytest.param("fork", marks=pytest.mark.nightly),
        pytest.param("forkserver", marks=pytest.mark.nightly),
    ],
)
@pytest.mark.usefixtures("notebook")
def test_the_pages_loader_reads_every_labelled_clip_once_whatever_starts_its_workers(
    start_method, monkeypatch
):
    pytest.importorskip("torch")
    if start_method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"{start_method} is not of this system")
    Path("train.py").write_text(LOADER, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    assert "read 70 of 70" in python("train.py", start_method, cwd=Path.cwd()).stdout


@pytest.mark.long
@pytest.mark.parametrize(
    ("page", "least"),
    [("models", 15), ("predict", 30), ("leak", 20), ("film-programmers", 10), ("film-compare", 15)],
)
def test_the_examples_of_a_page_print_what_it_says(page, least, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    from toy_films import write_toy_films

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # what the page puts aside goes with the test
    if page.startswith("film-"):
        write_toy_films(Path())
        write_toy_films(Path(), "more", first=6)
        write_toy_films(Path(), "others", first=12)
    result = doctest.testfile(str(ROOT / "docs" / f"{page}.md"), module_relative=False, encoding="utf-8")
    assert result.attempted > least
    assert result.failed == 0
