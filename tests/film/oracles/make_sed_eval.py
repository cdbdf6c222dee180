"""Make sed_eval.json anew: what sed_eval 0.2.1 and sed_scores_eval 0.0.4 say of its random timelines.

Both are on PyPI as sources only and pull dcase_util, librosa and numba, too much for the test environment:

    python -m venv oracle
    oracle/bin/pip install numpy scipy pandas cython wheel "setuptools<80" sed_eval
    oracle/bin/pip install --no-build-isolation sed_scores_eval
    oracle/bin/python tests/film/oracles/make_sed_eval.py
"""

import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
import sed_eval
from dcase_util.containers import MetaDataContainer
from sed_scores_eval import segment_based
from sed_scores_eval.base_modules.scores import create_score_dataframe

PATH = Path(__file__).with_name("sed_eval.json")


def f1(metric, spans):
    """F1 of two lists of spans, the reference first."""
    rows = [
        [{"event_onset": a, "event_offset": b, "event_label": "S", "filename": "f"} for a, b in one]
        for one in spans
    ]
    metric.evaluate(*map(MetaDataContainer, rows))
    return metric.results_overall_metrics()["f_measure"]["f_measure"]


document = json.loads(PATH.read_text(encoding="utf-8"))
for case in document["cases"]:
    for collar in case["boundary_f1"]:
        metric = sed_eval.sound_event.EventBasedMetrics(
            ["S"], t_collar=float(collar), percentage_of_length=0.2, event_matching_type="optimal"
        )
        case["boundary_f1"][collar] = f1(metric, (case["reference"], case["estimated"]))
    metric = sed_eval.sound_event.SegmentBasedMetrics(["S"], time_resolution=1.0)
    case["second_f1"] = f1(metric, case["whole_seconds"])
for case in document["scored"]:
    table = create_score_dataframe(np.array(case["scores"])[:, None], np.arange(1001.0), ["S"])
    truth = {"f": [(float(a), float(b), "S") for a, b in case["truth"]]}
    found, _ = segment_based.average_precision({"f": table}, truth, {"f": 1000.0}, segment_length=1.0)
    case["second_ap"] = float(found["S"])
document["versions"] = {name: version(name) for name in ("sed_eval", "sed_scores_eval", "numpy")}
PATH.write_text(json.dumps(document) + "\n", encoding="utf-8")
