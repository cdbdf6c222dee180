"""Rankings by pairs: planted strengths are found, and workers who toss coins are named."""

from unicodedata import normalize

import numpy as np
import pytest
from scipy.stats import spearmanr

from obygaze_features.manifest import Clip, Codebook, Level, Manifest, Scale, write_manifest
from obygaze_models.errors import ProtocolError
from obygaze_models.evaluation.ranking import centre, expected_s, next_pairs, rank_items
from obygaze_models.evaluation.strengths import Links, polya_gamma
from tests.command import obygaze


def comparisons(seed, n=40, per_item=20, workers=9, tosses=3):
    rng = np.random.default_rng(seed)
    truth = 3 * rng.normal(size=n)
    said = []
    for _ in range(per_item):
        for left, right in rng.permutation(n).reshape(-1, 2):
            who = rng.integers(workers)
            p = 0.5 if who < tosses else 1 / (1 + np.exp(truth[right] - truth[left]))
            a, b = (left, right) if rng.random() < p else (right, left)
            said.append((f"w{who}", f"i{a:02}", f"i{b:02}"))
    return said, truth


def test_the_order_of_items_and_the_workers_who_toss_coins_are_found():
    said, truth = comparisons(0)
    found = rank_items(said, draws=300)
    assert found.items == tuple(f"i{k:02}" for k in range(40))
    assert spearmanr(found.strength, truth).statistic > 0.85
    assert found.workers["worker"][found.workers["random"]].tolist() == ["w0", "w1", "w2"]
    assert found.workers["reliability"][3:].min() > 0.8
    strength = truth - centre(truth)
    assert np.mean((found.low <= strength) & (strength <= found.high)) > 0.85
    rank = (-truth).argsort().argsort() + 1
    assert np.mean((found.rank_low <= rank) & (rank <= found.rank_high)) > 0.85
    again = rank_items(said[::-1], draws=300)
    assert np.array_equal(found.strength, again.strength)


@pytest.mark.long  # simulates
def test_intervals_of_few_items_hold_strengths_and_ranks():
    strength_holds, rank_holds = [], []
    for seed in range(24):
        said, truth = comparisons(seed, n=6, per_item=6, tosses=0)
        found = rank_items(said, draws=200)
        assert np.all((found.low <= found.strength) & (found.strength <= found.high))
        assert np.all((found.rank_low >= 1) & (found.rank_low <= found.rank))
        assert np.all((found.rank <= found.rank_high) & (found.rank_high <= 6))
        strength, rank = truth - centre(truth), (-truth).argsort().argsort() + 1
        strength_holds.append((found.low <= strength) & (strength <= found.high))
        rank_holds.append((found.rank_low <= rank) & (rank <= found.rank_high))
    assert np.mean(strength_holds) > 0.9
    assert np.mean(rank_holds) > 0.9


def test_an_item_that_always_wins_has_no_end_and_moves_no_other():
    """Nobody can know how far it is; zero stays in the middle of the others."""
    said, _ = comparisons(0, tosses=0)
    always = [("w0", "far", item) for item in sorted({chosen for _, chosen, _ in said})] * 2
    alone, with_far = rank_items(said, draws=300), rank_items(said + always, draws=300)
    assert with_far.items[0] == "far"
    assert with_far.high[0] > with_far.strength[1:].max() + 5
    assert with_far.rank[0] == 1
    moved = with_far.strength[1:] - alone.strength
    assert abs(np.median(moved)) < 0.5


def test_zero_is_an_item_that_would_be_chosen_over_half_of_the_others():
    strengths = np.array([[0.0, 1.0, 2.0], [0.0, 1.0, 50.0]])
    zeros = centre(strengths)
    chosen = 1 / (1 + np.exp(strengths - zeros[:, None]))
    assert chosen.mean(axis=1) == pytest.approx([0.5, 0.5])


def test_of_two_who_contradict_each_other_the_master_is_taken_at_their_word():
    said = [(f"{b}", f"{a}") for a in range(6) for b in range(a + 1, 6)]
    both = [("one", *pair) for pair in said] + [("other", *pair[::-1]) for pair in said]
    for master, order in (("one", "012345"), ("other", "543210")):
        found = rank_items(both, masters=[master], draws=300)
        assert "".join(found.items[place] for place in found.strength.argsort()) == order
        assert found.workers.set_index("worker")["reliability"][master] == 1
    with pytest.raises(ProtocolError, match="nobody"):
        rank_items(both, masters=["nobody"])


def test_numbers_that_are_linked_are_drawn_with_the_mean_and_covariance_of_their_links():
    rng = np.random.default_rng(0)
    first, second = np.array([0, 0, 1, 2, 3, 3]), np.array([1, 2, 3, 4, 4, 0])
    weights, held = np.array([2.0, 0.0, 0.5, 1.0, 0.1, 3.0]), np.array([0.0, 0.0, 0.0, 0.0, 0.5])
    precision = np.diag(held)
    for a, b, weight in zip(first, second, weights, strict=True):
        apart = np.eye(5)[a] - np.eye(5)[b]
        precision += weight * np.outer(apart, apart)
    towards = np.array([1.0, -2.0, 0.5, 0.0, 0.3])
    links = Links(first, second, weights, 5)
    drawn = np.array([links.draw(held, towards, np.zeros(5), rng) for _ in range(4000)])
    covariance = np.linalg.inv(precision)
    apart = (drawn.mean(axis=0) - covariance @ towards) / np.sqrt(np.diag(covariance) / len(drawn))
    assert np.abs(apart).max() < 4
    assert np.cov(drawn.T) == pytest.approx(covariance, rel=0.12)


def test_what_a_ranking_takes_grows_with_the_comparisons_and_is_known_before():
    assert expected_s(100_000) < 12 * expected_s(10_000)
    assert expected_s(10_000) > 5 * expected_s(1_000)


def test_polya_gamma_variables_have_their_moments():
    rng = np.random.default_rng(0)
    for c in (0.0, 1.0, 6.0):
        drawn = polya_gamma(np.full(200_000, c), rng)
        mean = np.tanh(c / 2) / (2 * c) if c else 0.25
        variance = (np.sinh(c) - c) / (4 * c**3 * np.cosh(c / 2) ** 2) if c else 1 / 24
        assert drawn.mean() == pytest.approx(mean, rel=0.01)
        assert drawn.var() == pytest.approx(variance, rel=0.02)


def test_what_cannot_be_ranked_is_refused():
    with pytest.raises(ProtocolError, match="a and c are in parts"):
        rank_items([("w", "a", "b"), ("w", "c", "d")])


def test_workers_and_clips_are_compared_by_name(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    scale = Scale("joy", (Level("low"), Level("high")), (0.0,))
    book = Codebook("moods", "1", (Level("none"), Level("some")), scales=(scale,))
    clips = tuple(Clip(name, "m", extras={"joy": "0.5" * (name == "d")}) for name in ("é", "b", "c", "d"))
    write_manifest(Manifest(clips, tmp_path, book), tmp_path / "clips.csv")
    head, rows = "worker,left,right,chosen\n", "W,é,b,b\nW,b,c,c\n"

    def ranked(text):
        (tmp_path / "said.csv").write_text(head + text, "utf-8")
        code = obygaze(
            *["manifest", "rank", "clips.csv", "said.csv", "--scale", "joy", "--out", "out.csv", "--force"]
        )
        return code, "".join(capsys.readouterr())

    code, told = ranked(normalize("NFD", rows))
    assert (code, "1 row had cells in joy" in told) == (0, True)
    assert "3 of 4 clips ranked; of 0 the whole interval is in one level" in told
    code, told = ranked(rows + "w,b,c,c\n")
    assert (code, "worker 'W' and 'w' (line 4) are one name" in told) == (1, True)
    code, told = ranked(rows + rows)
    assert (code, "2 rows repeat a worker's judgement of two clips" in told) == (0, True)


def test_quicksort_sorts_in_rounds_and_then_asks_for_what_was_never_compared():
    items = [f"i{k:02}" for k in range(60)]
    said, rounds = [], 0
    while pairs := next_pairs(items, said):
        assert not {frozenset(pair) for pair in pairs} & {frozenset((a, b)) for _, a, b in said}
        said += [("w", max(pair), min(pair)) for pair in pairs]
        rounds += 1
        if rounds == 9:
            first_sort = len(said)
    assert first_sort < 60 * 59 / 4
    found = rank_items(said, draws=100)
    assert spearmanr(found.strength, np.arange(60)).statistic > 0.99
    assert len(said) <= 60 * 59 / 2


def test_a_pair_that_as_many_say_one_as_the_other_is_asked_again():
    assert next_pairs("ab", [("v", "a", "b")]) == []
    ((left, right),) = next_pairs("ab", [("v", "a", "b"), ("w", "b", "a")])
    assert {left, right} == {"a", "b"}
    with pytest.raises(ProtocolError, match="10,001"):
        next_pairs([f"{k}" for k in range(10_001)])
