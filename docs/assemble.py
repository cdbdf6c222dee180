"""Assemble the sources of the site: docs/, the pages beside it, the gallery, and a page a public name.

Run it with: python docs/assemble.py FOLDER
"""

import ast
import posixpath
import re
import shutil
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[1]
BESIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
    "SECURITY.md": "security.md",
    "LICENSE": "LICENSE",
    "CITATION.cff": "CITATION.cff",
    "manifests/README.md": "manifests.md",
    "stores/README.md": "stores.md",
    "tests/README.md": "tests.md",
    "benchmarks/README.md": "benchmarks.md",
}
"""File of the repository -> its place in the site."""

NAVIGATION = {
    "First hour": ("first-hour", "installing"),
    "How to": (
        *(
            "corpora",
            "annotators",
            "codebooks",
            "shots",
            "backbones",
            "encoders",
            "encoder-types",
            "mveb",
            "gpu",
            "slurm",
            "large",
            "lsmdc",
        ),
        *("sharing", "models", "predict", "joint", "text-search"),
        *("film-page", "film-programmers", "film-compare", "python", "gallery/index"),
    ),
    "Reference": (
        *("vocabulary", "command-line", "manifests", "stores", "store-format", "decoding"),
        *("api/obygaze_features/index", "api/obygaze_models/index"),
        *("api/obygaze_film/index", "api/obygaze_studies/index"),
    ),
    "Explanation": (
        *("film", "evaluation", "leak", "when", "concepts"),
        *("mobygaze-words", "decisions", "architecture", "extending"),
    ),
    "Audits and tasks": (
        *("audits/README", "audits/eat", "audits/words", "audits/alpha", "audits/saliency"),
        *(
            "audits/gender-score",
            "audits/cooc",
            "audits/erase",
            "audits/groups",
            "tasks/mediaeval15",
            "papers",
        ),
    ),
    "Project": (
        *("contributing", "code-of-conduct", "security", "changelog"),
        *("releasing", "tests", "benchmarks"),
    ),
}
PACKAGES = ("obygaze_features", "obygaze_models", "obygaze_film", "obygaze_studies")
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)\s#]+)(#[^)\s]+)?\)")


def assemble(out: Path) -> None:
    """Write all sources into an empty folder."""
    shutil.rmtree(out, ignore_errors=True)
    skipped = shutil.ignore_patterns("*.py", "__pycache__")
    shutil.copytree(ROOT / "docs", out, ignore=skipped)
    sources = {
        page.relative_to(out).as_posix(): page.relative_to(out).as_posix() for page in out.rglob("*.md")
    }
    sources = {f"docs/{name}": place for name, place in sources.items()} | BESIDE
    for source, place in sources.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        (out / place).write_text(_moved(text, source, place, out) if place.endswith(".md") else text, "utf-8")
    _write_gallery(out)
    for package in PACKAGES:
        _write_api(out, package)
    trees = "\n".join(_tree(pages, caption, hidden=True) for caption, pages in NAVIGATION.items())
    with (out / "index.md").open("a", encoding="utf-8") as index:
        index.write("\n" + trees)


def _moved(text: str, source: str, place: str, out: Path) -> str:
    """Turn links of the repository into links of the site."""

    def moved(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), found[1]))
        there = BESIDE.get(target, target.removeprefix("docs/"))
        if target not in BESIDE and not (out / there).exists():
            return found[0]
        return f"]({posixpath.relpath(there, posixpath.dirname(place) or '.')}{found[2] or ''})"

    return LINK.sub(moved, text)


def _write_gallery(out: Path) -> None:
    """Write a page of every script of examples/: its docstring and its code."""
    folder = out / "gallery"
    folder.mkdir()
    scripts = sorted((ROOT / "examples").glob("*.py"))
    for script in scripts:
        title = script.stem.replace("_", " ").capitalize()
        code = script.read_text(encoding="utf-8")
        page = f"# {title}\n\n{_docstring(script)}\n\nexamples/{script.name}:\n\n```python\n{code}```\n"
        (folder / f"{script.stem}.md").write_text(page, encoding="utf-8")
    listed = _tree([script.stem for script in scripts], "")
    (folder / "index.md").write_text(
        f"# Gallery\n\nScripts that the tests run.\n\n{listed}", encoding="utf-8"
    )


def _write_api(out: Path, package: str) -> None:
    """Write a page of every public name of a package."""
    folder = out / "api" / package
    folder.mkdir(parents=True)
    names = _public(package)
    before = [name for other in PACKAGES[: PACKAGES.index(package)] for name in _public(other)]
    for name in names:
        value = getattr(import_module(package), name)
        module = value.__name__ if isinstance(value, ModuleType) else None
        member = "automodule" if module else "autoclass" if name[0].isupper() else "autofunction"
        options = {
            "autoclass": "   :members:\n   :show-inheritance:\n",
            "automodule": "   :members:\n",
            "autofunction": "",
        }[member]
        again = "   :no-index:\n" if name in before else ""  # a name of both packages is indexed once
        page = f"{name}\n{'=' * len(name)}\n\n.. {member}:: {module or f'{package}.{name}'}\n{options}{again}"
        (folder / f"{name}.rst").write_text(page, encoding="utf-8")
    where = (
        "Examples run in a folder with `films.csv` and `more.csv`, the stores `stores/films` and "
        "`stores/more` (all written by `examples/toy_films.py`), and models of the first that `save_models` "
        "wrote to `kept/`."
    )
    page = f"# {package}\n\n{_docstring(ROOT / package / '__init__.py')}\n\n{where}\n\n{_tree(names, '')}"
    (folder / "index.md").write_text(page, encoding="utf-8")


def _tree(pages: tuple[str, ...] | list[str], caption: str, *, hidden: bool = False) -> str:
    options = (
        ":maxdepth: 1\n" + (f":caption: {caption}\n" if caption else "") + (":hidden:\n" if hidden else "")
    )
    return "```{toctree}\n" + options + "\n" + "\n".join(pages) + "\n```\n"


def _docstring(path: Path) -> str:
    """Read what a module says of itself, without its examples."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.partition("\nExamples\n")[0].strip()


def _public(package: str) -> list[str]:
    """List what a package offers, without its version."""
    return [name for name in import_module(package).__all__ if name != "__version__"]


if __name__ == "__main__":
    assemble(Path(sys.argv[1]))
