"""The Python of pages runs as it stands, and prints what they say."""

import doctest
import inspect
import re
from functools import cached_property
from pathlib import Path

import pytest

from obygaze_features import Manifest
from tests.process import python

ROOT = Path(__file__).parents[1]


def blocks(page):
    return re.findall(
        r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )


@pytest.fixture
def notebook(tmp_path, monkeypatch, capsys):
    """Stand in a folder with films.csv and stores/films-1.0.0; gives what runs code there."""
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.chdir(tmp_path)
    from toy_films import write_toy_films

    write_toy_films(Path(), backbone="xclip")

    def run(code):
        exec(code, {"__name__": "__main__"})  # noqa: S102 - our own pages
        return capsys.readouterr().out

    return run


def test_the_twelve_lines_of_the_readme_run_on_a_store_at_a_url(notebook):
    pytest.importorskip("obstore")
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
    said = python(
        "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), str(tmp_path / "lines.py"), cwd=ROOT
    )
    assert "Success" in said.stdout


def test_a_manifest_is_what_tables_of_features_take_for_pyright_too():
    """Pyright takes no cached property for the read-only property of a protocol."""
    for name in ("by_id", "codebook"):
        member = inspect.getattr_static(Manifest, name, None)
        assert not isinstance(member, cached_property)


def test_the_page_for_notebooks_runs_from_top_to_bottom(notebook):
    pytest.importorskip("xarray")
    checks = (
        "assert model.concepts_ == ('Body', 'Clothing')\nassert frame.attrs == {'left_out': {'failed': 1}}"
    )
    said = notebook("\n".join([*blocks("docs/python.md"), checks]))
    assert said.startswith("stores/nothing: no such store")


@pytest.mark.parametrize(
    ("page", "least"),
    [("models", 15), ("predict", 30), ("leak", 20), ("film-programmers", 10), ("film-compare", 15)],
)
def test_the_examples_of_a_page_print_what_it_says(page, least, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    from toy_films import write_toy_films

    monkeypatch.chdir(tmp_path)
    if page.startswith("film-"):
        write_toy_films(Path())
        write_toy_films(Path(), "more", first=6)
        write_toy_films(Path(), "others", first=12)
    found = doctest.testfile(str(ROOT / "docs" / f"{page}.md"), module_relative=False, encoding="utf-8")
    assert found.attempted > least
    assert found.failed == 0
