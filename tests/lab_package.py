"""A lab's own package, installed as pip would install it."""

import sys


def describe(site, name, entry_points):
    """Write the metadata (a dist-info) of a package 1.0 whose modules lie in a folder."""
    info = site / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(entry_points, encoding="utf-8")


def install(site, monkeypatch, module, source, entry_points):
    """Install a package of one module for the length of a test."""
    (site / f"{module}.py").write_text(source, encoding="utf-8")
    describe(site, module, entry_points)
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.delitem(sys.modules, module, raising=False)
