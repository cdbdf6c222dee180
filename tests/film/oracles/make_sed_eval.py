"""Make sed_eval.json: what sed_eval 0.2.1 and sed_scores_eval 0.0.4 say of random timelines.

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


def timeline(rng, n):
    edges = np.sort(rng.uniform(0, 1000, 2 * n)).round(2)
    return [(float(a), float(b)) for a, b in edges.reshape(-1, 2) if b > a]


def nudged(rng, spans):
    """Spans with boundaries moved a little, some missing, some added."""
    moved = []
    last = 0.0
    for start, end in spans:
        if rng.random() < 0.2:
            continue
        a, b = sorted(np.array([start, end]) + rng.normal(0, 6, 2))
        a = max(a, last)
        if b > a:
            moved.append((round(float(a), 2), round(float(b), 2)))
            last = b
    return moved


def listed(spans):
    rows = [{"event_onset": a, "event_offset": b, "event_label": "S", "filename": "f"} for a, b in spans]
    return MetaDataContainer(rows)


def main():
    rng = np.random.default_rng(7)
    cases = []
    for number in range(12):
        reference = timeline(rng, int(rng.integers(3, 25)))
        estimated = nudged(rng, reference) if number % 3 else timeline(rng, int(rng.integers(3, 25)))
        case = {"reference": reference, "estimated": estimated, "boundary_f1": {}}
        for collar in (5.0, 15.0):
            metric = sed_eval.sound_event.EventBasedMetrics(
                ["S"], t_collar=collar, percentage_of_length=0.2, event_matching_type="optimal"
            )
            metric.evaluate(listed(reference), listed(estimated))
            case["boundary_f1"][f"{collar:g}"] = metric.results_overall_metrics()["f_measure"]["f_measure"]
        segment = sed_eval.sound_event.SegmentBasedMetrics(["S"], time_resolution=1.0)
        whole = [
            [(round(a), round(b)) for a, b in spans if round(b) > round(a)]
            for spans in (reference, estimated)
        ]
        segment.evaluate(*map(listed, whole))
        case["whole_seconds"] = whole
        case["second_f1"] = segment.results_overall_metrics()["f_measure"]["f_measure"]
        cases.append(case)
    scored = []
    for _ in range(4):
        truth = [(round(a), round(b)) for a, b in timeline(rng, 8) if round(b) > round(a)]
        truth = [span for place, span in enumerate(truth) if not place or span[0] > truth[place - 1][1]]
        y = np.zeros(1000)
        for a, b in truth:
            y[a:b] = 1
        scores = (0.7 * y + rng.normal(size=1000)).round(3)
        table = create_score_dataframe(scores[:, None], np.arange(1001.0), ["S"])
        found, _ = segment_based.average_precision(
            {"f": table},
            {"f": [(float(a), float(b), "S") for a, b in truth]},
            {"f": 1000.0},
            segment_length=1.0,
        )
        scored.append({"truth": truth, "scores": scores.tolist(), "second_ap": float(found["S"])})
    made = {name: version(name) for name in ("sed_eval", "sed_scores_eval", "numpy")}
    path = Path(__file__).with_name("sed_eval.json")
    path.write_text(json.dumps({"versions": made, "cases": cases, "scored": scored}) + "\n", encoding="utf-8")


main()
