"""Add to the site what does not lie in docs/: pages beside it, the gallery, and a page a public name."""

import ast
import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

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

PACKAGES = ("obygaze_features", "obygaze_models")
GALLERY = "gallery"
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)\s#]+)(#[^)\s]+)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put gallery and API between the guide and the audits."""
    gallery = [{title: page} for page, title, _ in _gallery()]
    api = [
        {
            package: [
                f"api/{package}/index.md",
                *({name: f"api/{package}/{name}.md"} for name in _names(package)),
            ]
        }
        for package in PACKAGES
    ]
    nav = list(config.nav or [])
    config.nav = [*nav[:3], {"Gallery": gallery}, {"API": api}, *nav[3:]]
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages."""
    for source, place in BESIDE.items():
        files.append(File.generated(config, place, content=(ROOT / source).read_text(encoding="utf-8")))
    for place, _, text in _gallery():
        files.append(File.generated(config, place, content=text))
    for package in PACKAGES:
        names = _names(package)
        listed = "\n".join(f"- [`{name}`]({name}.md)" for name in names)
        summary = _docstring(ROOT / package / "__init__.py")
        text = f"# {package}\n\n{summary}\n\n{listed}\n"
        files.append(File.generated(config, f"api/{package}/index.md", content=text))
        for name in names:
            text = f"::: {package}.{name}\n"
            files.append(File.generated(config, f"api/{package}/{name}.md", content=text))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links of the repository into links of the site."""
    del config
    here = page.file.src_uri
    source = next((name for name, place in BESIDE.items() if place == here), f"docs/{here}")

    def moved(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), found[1]))
        place = BESIDE.get(target, target.removeprefix("docs/"))
        if files.get_file_from_path(place) is None:
            return found[0]
        return f"]({posixpath.relpath(place, posixpath.dirname(here) or '.')}{found[2] or ''})"

    return LINK.sub(moved, markdown)


def _gallery() -> list[tuple[str, str, str]]:
    """Make a page of every script of examples/: its place, its title, and its text."""
    pages = []
    for path in sorted((ROOT / "examples").glob("*.py")):
        title = path.stem.replace("_", " ").capitalize()
        code = path.read_text(encoding="utf-8")
        text = f'# {title}\n\n{_docstring(path)}\n\n```python title="examples/{path.name}"\n{code}```\n'
        pages.append((f"{GALLERY}/{path.stem}.md", title, text))
    return pages


def _docstring(path: Path) -> str:
    """Read what a module says of itself, without its examples."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.partition("\nExamples\n")[0].strip()


def _names(package: str) -> list[str]:
    """Read the names of `__all__`, in order, without importing the package."""
    tree = ast.parse((ROOT / package / "__init__.py").read_text(encoding="utf-8"))
    (value,) = (
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and any(getattr(to, "id", "") == "__all__" for to in node.targets)
    )
    return [name for name in ast.literal_eval(value) if name != "__version__"]
