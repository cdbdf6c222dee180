"""To evaluate a linear probe, the command imports what a linear probe needs."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

COMMAND = """
import sys
from obygaze.cli import main
sys.argv = ["obygaze", "evaluate", "films.csv", "stores/films", "--task", "hn_s", "--model", "linear"]
try:
    main()
finally:
    print(*sys.modules, sep="\\n", file=open("modules.txt", "w"))
"""

NEEDLESS = (
    "obygaze_features.manifest.importers",
    "obygaze_models.concepts",
    "obygaze_models.models.attention",
    "obygaze_models.persistence",
    "sklearn.svm",
)


def test_a_linear_probe_needs_no_other_model_and_no_importer(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    from toy_films import write_toy_films

    write_toy_films(tmp_path)
    result = subprocess.run(
        [sys.executable, "-c", COMMAND], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    imported = (tmp_path / "modules.txt").read_text(encoding="utf-8").split()
    assert "obygaze_models.models.linear" in imported
    assert [name for name in imported if name.startswith(NEEDLESS)] == []
