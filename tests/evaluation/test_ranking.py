"""Rankings by pairs: planted strengths are found, and workers who toss coins are named."""

from dataclasses import dataclass
from unicodedata import normalize

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import spearmanr

from obygaze_features.manifest import Clip, Codebook, Level, Manifest, Scale, write_manifest
from obygaze_models.errors import ProtocolError
from obygaze_models.evaluation.ranking import centre, expected_s, next_pairs, rank_items
from obygaze_models.evaluation.strengths import Links, polya_gamma
from tests.command import obygaze


@dataclass(frozen=True)
class PlantedItems:
    """Items i00, i01, ... of planted strengths, and what workers w0, w1, ... said of pairs of them."""

    strength: np.ndarray  # planted strength of each item, [items], with the zero that rankings have
    comparisons: list[tuple[str, str, str]]  # rows of (worker, chosen item, other item)

    @property
    def rank(self) -> np.ndarray:
        """Planted rank of each item, 1 for the strongest."""
        return (-self.strength).argsort().argsort() + 1


def plant_items(seed, *, n_items, n_per_item, n_workers=9, n_coin_tossers=0):
    """Plant items, each in `n_per_item` comparisons; the first workers toss coins."""
    rng = np.random.default_rng(seed)
    strength = 3 * rng.normal(size=n_items)
    comparisons = []
    for _ in range(n_per_item):
        for left, right in rng.permutation(n_items).reshape(-1, 2):
            worker = rng.integers(n_workers)
            p_left = 1 / (1 + np.exp(strength[right] - strength[left]))
            if worker < n_coin_tossers:
                p_left = 0.5
            chosen, other = (left, right) if rng.random() < p_left else (right, left)
            comparisons.append((f"w{worker}", f"i{chosen:02}", f"i{other:02}"))
    return PlantedItems(strength - centre(strength), comparisons)


def share_within(low, values, high):
    """Return the share of values that lie in their intervals."""
    return np.mean((low <= values) & (values <= high))


@pytest.fixture(scope="module")
def forty_items():
    """Forty items in 20 comparisons each, by nine workers of whom w0, w1 and w2 toss coins."""
    return plant_items(seed=0, n_items=40, n_per_item=20, n_coin_tossers=3)


@pytest.fixture(scope="module")
def ranking_of_forty(forty_items):
    """The ranking of the forty items."""
    return rank_items(forty_items.comparisons, draws=300)


def test_the_planted_order_is_found_within_its_intervals(forty_items, ranking_of_forty):
    """Forty items of planted strengths were each compared 20 times, by nine workers of whom three toss coins.

    Strengths and ranks have intervals of 95 %; more than 85 % of each hold what is planted.
    """
    ranking = ranking_of_forty
    assert ranking.items == tuple(f"i{number:02}" for number in range(40))
    assert spearmanr(ranking.strength, forty_items.strength).statistic > 0.85
    assert share_within(ranking.low, forty_items.strength, ranking.high) > 0.85
    assert share_within(ranking.rank_low, forty_items.rank, ranking.rank_high) > 0.85


def test_workers_who_toss_coins_are_named(ranking_of_forty):
    """Nine workers, w0 to w8, compared forty items. The first three toss coins, which is called random.

    The reliability of the others, who choose by the planted strengths, is near 1.
    """
    workers = ranking_of_forty.workers
    named_random = workers["worker"][workers["random"]]
    assert named_random.tolist() == ["w0", "w1", "w2"]
    reliability_of_others = workers["reliability"][3:]
    assert reliability_of_others.min() > 0.8


@pytest.mark.nightly
@pytest.mark.long  # simulates
def test_intervals_of_six_items_hold_strengths_and_ranks():
    """Six items of planted strengths are ranked by comparisons, six of each item; this is done 24 times.

    Of the 95 % intervals of strengths, and of ranks, at least 90 % must hold what was planted, as the shares
    vary by chance. Each interval holds its own estimate, and ranks are between 1 and 6.
    """
    strength_shares = []
    rank_shares = []
    for seed in range(24):
        planted = plant_items(seed, n_items=6, n_per_item=6)
        ranking = rank_items(planted.comparisons, draws=200)
        assert np.all(ranking.low <= ranking.strength)
        assert np.all(ranking.strength <= ranking.high)
        assert np.all(ranking.rank_low >= 1)
        assert np.all(ranking.rank_low <= ranking.rank)
        assert np.all(ranking.rank <= ranking.rank_high)
        assert np.all(ranking.rank_high <= 6)
        strength_shares.append(share_within(ranking.low, planted.strength, ranking.high))
        rank_shares.append(share_within(ranking.rank_low, planted.rank, ranking.rank_high))

    assert np.mean(strength_shares) > 0.9
    assert np.mean(rank_shares) > 0.9


@pytest.mark.long
def test_an_item_that_always_wins_moves_no_other():
    """Forty items of strengths around 0, with a spread of 3, are compared. One more beats each of them twice.

    It ranks first, and how far it is above the others cannot be known: its interval reaches 5 above all of
    them. It must not move the others' strengths: half of them move by less than .5.
    """
    planted = plant_items(seed=0, n_items=40, n_per_item=20)
    wins = [("w0", "always", f"i{number:02}") for number in range(40)]

    without_winner = rank_items(planted.comparisons, draws=300)
    with_winner = rank_items(planted.comparisons + wins + wins, draws=300)

    assert with_winner.items[0] == "always"
    assert with_winner.rank[0] == 1
    strengths_of_others = with_winner.strength[1:]
    assert with_winner.high[0] > strengths_of_others.max() + 5
    moved_by = strengths_of_others - without_winner.strength
    assert abs(np.median(moved_by)) < 0.5


@pytest.mark.parametrize("strengths", [[0.0, 1.0, 2.0], [0.0, 1.0, 50.0]])
def test_zero_is_the_strength_that_is_chosen_over_an_item_half_of_the_time_on_average(strengths):
    """It is no mean: one very strong item of three does not move it far.

    An item of strength a is chosen over one of strength b with the probability sigmoid(a - b).
    """
    (zero,) = centre(np.array([strengths]))
    p_zero_is_chosen = expit(zero - np.array(strengths))
    assert p_zero_is_chosen.mean() == pytest.approx(0.5)


@pytest.fixture(scope="module")
def contradictions():
    """Two workers on each pair of items 0 to 5: `up` chooses the larger number, `down` the smaller."""
    pairs = [(f"{larger}", f"{smaller}") for smaller in range(6) for larger in range(smaller + 1, 6)]
    up = [("up", larger, smaller) for larger, smaller in pairs]
    down = [("down", smaller, larger) for larger, smaller in pairs]
    return up + down


@pytest.mark.parametrize(
    ("master", "from_weakest"),
    [("up", ["0", "1", "2", "3", "4", "5"]), ("down", ["5", "4", "3", "2", "1", "0"])],
    ids=["up", "down"],
)
def test_where_workers_contradict_each_other_the_master_is_right(contradictions, master, from_weakest):
    """Of each two of the items 0 to 5 the worker "up" chose the larger number, and "down" the smaller.

    A master is a worker whose judgements are taken as right.
    """
    ranking = rank_items(contradictions, masters=[master], draws=300)

    items_by_strength = [ranking.items[index] for index in ranking.strength.argsort()]
    assert items_by_strength == from_weakest
    assert ranking.workers.set_index("worker")["reliability"][master] == 1


def test_the_order_of_comparisons_does_not_matter(contradictions):
    """Of each two of six items the worker "up" chose one, and "down" the other; "up" is the master.

    A master is a worker whose judgements are taken as right.
    """
    ranking = rank_items(contradictions, masters=["up"], draws=300)
    ranking_of_reversed = rank_items(contradictions[::-1], masters=["up"], draws=300)

    assert np.array_equal(ranking_of_reversed.strength, ranking.strength)


@pytest.mark.long
def test_linked_numbers_are_drawn_with_their_mean_and_covariance():
    """Five numbers x have a Gaussian distribution exp(-x' Q x / 2 + b' x), where b is the linear term.

    The matrix Q has a link for each of six pairs of numbers, weight times their squared difference, and the
    precision of each number's prior. The covariance is Q^-1 and the mean Q^-1 b. 4000 draws must have the
    mean within four standard errors, and each covariance within 12 %, about five standard errors of a
    variance, which is sqrt(2 / 4000) = 2.2 % of it.
    """
    rng = np.random.default_rng(0)
    first = np.array([0, 0, 1, 2, 3, 3])
    second = np.array([1, 2, 3, 4, 4, 0])
    weights = np.array([2.0, 0.0, 0.5, 1.0, 0.1, 3.0])
    prior_precision = np.array([0.0, 0.0, 0.0, 0.0, 0.5])
    linear_term = np.array([1.0, -2.0, 0.5, 0.0, 0.3])
    links = Links(first, second, weights, n=5)
    start = np.zeros(5)  # of the solver, which the draw does not depend on

    draws = np.array([links.draw(prior_precision, linear_term, start, rng) for _ in range(4000)])

    precision = np.diag(prior_precision)
    for a, b, weight in zip(first, second, weights, strict=True):
        # weight * (number a - number b) ** 2 as a quadratic form
        precision[a, a] += weight
        precision[b, b] += weight
        precision[a, b] -= weight
        precision[b, a] -= weight
    covariance = np.linalg.inv(precision)
    mean = covariance @ linear_term
    standard_error = np.sqrt(np.diag(covariance) / 4000)
    assert np.abs((draws.mean(axis=0) - mean) / standard_error).max() < 4
    assert np.cov(draws.T) == pytest.approx(covariance, rel=0.12)


def test_the_expected_time_of_a_ranking_grows_with_its_comparisons():
    """Ten times as many comparisons take 5 to 12 times as long."""
    seconds_of_1_000 = expected_s(n_comparisons=1_000)
    seconds_of_10_000 = expected_s(n_comparisons=10_000)
    seconds_of_100_000 = expected_s(n_comparisons=100_000)
    assert seconds_of_10_000 > 5 * seconds_of_1_000
    assert seconds_of_100_000 < 12 * seconds_of_10_000


@pytest.mark.parametrize(
    ("c", "mean", "variance"),
    [
        (0.0, 1 / 4, 1 / 24),  # the limits of the formulas below
        (1.0, np.tanh(1 / 2) / 2, (np.sinh(1) - 1) / (4 * np.cosh(1 / 2) ** 2)),
        (6.0, np.tanh(3) / 12, (np.sinh(6) - 6) / (4 * 6**3 * np.cosh(3) ** 2)),
    ],
)
def test_polya_gamma_variables_have_their_mean_and_variance(c, mean, variance):
    """The mean of PG(1, c) is tanh(c / 2) / (2 c), and its variance (sinh(c) - c) / (4 c^3 cosh(c / 2)^2).

    200,000 variables are drawn.
    """
    draws = polya_gamma(np.full(200_000, c), np.random.default_rng(0))
    assert draws.mean() == pytest.approx(mean, rel=0.01)
    assert draws.var() == pytest.approx(variance, rel=0.02)


@pytest.mark.parametrize(
    ("comparisons", "masters", "message"),
    [
        ([("w", "a", "b"), ("w", "c", "d")], [], "a and c are in parts"),
        ([("w", "a", "b")], ["nobody"], "nobody"),
    ],
    ids=["items that no comparison connects", "a master who compared nothing"],
)
def test_comparisons_that_give_no_ranking_are_refused(comparisons, masters, message):
    """A comparison is (worker, chosen item, other item)."""
    with pytest.raises(ProtocolError, match=message):
        rank_items(comparisons, masters=masters)


@pytest.fixture
def rank_clips(tmp_path, monkeypatch):
    """Return a function that runs `manifest rank` on rows of comparisons, and returns its exit code.

    The clips are é, b, c and d, of which d has a value on the scale already.
    """
    monkeypatch.chdir(tmp_path)
    scale = Scale("joy", (Level("low"), Level("high")), (0.0,))
    codebook = Codebook("moods", "1", (Level("none"), Level("some")), scales=(scale,))
    clips = [Clip(name, "m", extras={"joy": ""}) for name in ("é", "b", "c")]
    clips.append(Clip("d", "m", extras={"joy": "0.5"}))
    write_manifest(Manifest(tuple(clips), tmp_path, codebook), tmp_path / "clips.csv")

    def rank(rows, *options):
        text = f"Joy, first round\nworker,left,right,chosen\n{rows}"  # a title above the header
        (tmp_path / "comparisons.csv").write_text(text, "utf-8")
        command = ["manifest", "rank", "clips.csv", "comparisons.csv", "--scale", "joy", "--out", "out.csv"]
        return obygaze(*command, *options)

    return rank


@pytest.mark.long
def test_a_clip_whose_name_has_an_accent_is_found_however_a_table_of_comparisons_encodes_it(
    rank_clips, capsys
):
    """A manifest has the clips é, b, c and d. By the table, the worker W saw é and b, and chose b; then c.

    The table has the Unicode form NFD, in which é is two characters, e and an accent. The three clips that W
    compared are ranked, by too few comparisons for a whole interval to be in one level. The clip d, which
    nobody compared, had a value of the scale "joy" in the manifest, which is emptied: the command says so.
    """
    rows = normalize("NFD", "W,é,b,b\nW,b,c,c\n")  # worker, left clip, right clip, chosen clip

    exit_code = rank_clips(rows)

    printed, notices = capsys.readouterr()
    assert exit_code == 0
    assert "3 of 4 clips ranked; of 0 the whole interval is in one level" in printed + notices
    assert "1 row had cells in joy, which are replaced or emptied" in notices


@pytest.mark.long
def test_rows_that_repeat_a_workers_judgement_of_two_clips_are_counted(rank_clips, capsys):
    """The worker W saw b and é, and b and c. Both rows of the table are there a second time."""
    rows = "W,é,b,b\nW,b,c,c\n"  # worker, left clip, right clip, chosen clip

    exit_code = rank_clips(rows + rows)

    printed, notices = capsys.readouterr()
    assert exit_code == 0
    assert "2 rows repeat a worker's judgement of two clips" in printed + notices


@pytest.mark.long
def test_clips_whose_whole_interval_is_in_one_level_are_counted(rank_clips, capsys):
    """Above 0 the level is high, below it low. 40 workers chose b before c, and half of them b before é.

    So c is certainly low, and both others are certainly high.
    """
    rows = ["W{0},b,c,b\nW{0},é,c,é\nW{0},b,é,{1}\n".format(worker, "bé"[worker % 2]) for worker in range(40)]

    assert rank_clips("".join(rows)) == 0

    assert "3 of 4 clips ranked; of 3 the whole interval is in one level" in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    ("rows", "messages"),
    [
        ("W,é,b,b\nW,b,c,c\nw,b,c,c\n", ["worker 'W' and 'w' (line 5) are one name"]),
        ("1,é,b,b\n1,b,c,c\n01,b,c,c\n", ["worker '1' and '01' (line 5) are one name"]),
        ("W,x,b,b\nW,b,c,c\nW,b,y,b\n", ["line 3", "'x' is no clip of the manifest", "'y' is no clip"]),
    ],
    ids=["a worker in two spellings", "a worker's number with a zero", "clips that the manifest lacks"],
)
def test_comparisons_of_unclear_names_are_refused_with_their_lines(rank_clips, capsys, rows, messages):
    """A row is: worker, left clip, right clip, chosen clip. The clips are é, b, c and d.

    The first row is line 3, after a title and the header.
    """
    exit_code = rank_clips(rows)

    errors = capsys.readouterr().err
    assert exit_code == 1
    for message in messages:
        assert message in errors


def test_a_master_is_found_in_any_form_of_accents(rank_clips):
    """A keyboard may write é as e and an accent, where the table has one sign, or the other way round."""
    assert rank_clips("Zoé,é,b,b\nZoé,b,c,c\n", "--master", normalize("NFD", "Zoé")) == 0


@pytest.fixture(scope="module")
def rounds_of_sixty_items():
    """Rounds of comparisons of sixty items, i00 the weakest, until there are no more pairs to ask for."""
    items = [f"i{number:02}" for number in range(60)]
    rounds = []
    comparisons = []
    pairs = next_pairs(items, comparisons)
    while pairs:
        comparisons_of_round = [("w", max(pair), min(pair)) for pair in pairs]
        rounds.append(comparisons_of_round)
        comparisons += comparisons_of_round
        pairs = next_pairs(items, comparisons)
    return rounds


def all_comparisons(rounds):
    """Return the comparisons of all rounds in one list."""
    return [comparison for comparisons_of_round in rounds for comparison in comparisons_of_round]


@pytest.mark.long
def test_no_pair_is_asked_twice_where_votes_agree(rounds_of_sixty_items):
    """Sixty items have 60 * 59 / 2 pairs. The stronger one is always chosen."""
    pairs = [frozenset([chosen, other]) for _, chosen, other in all_comparisons(rounds_of_sixty_items)]
    assert len(set(pairs)) == len(pairs)
    assert len(pairs) <= 60 * 59 / 2


def test_nine_rounds_of_a_quicksort_sort_the_items_with_less_than_half_of_the_pairs(rounds_of_sixty_items):
    """Items are i00, the weakest, to i59: sorted once each was compared with the next stronger one."""
    first_nine_rounds = rounds_of_sixty_items[:9]
    compared = {(chosen, other) for _, chosen, other in all_comparisons(first_nine_rounds)}

    n_pairs = 60 * 59 / 2
    assert len(compared) < n_pairs / 2
    for number in range(59):
        item, next_stronger = f"i{number:02}", f"i{number + 1:02}"
        assert (next_stronger, item) in compared


def test_the_comparisons_of_all_rounds_find_the_order(rounds_of_sixty_items):
    """Sixty items, i00, the weakest, to i59, were compared in rounds; the stronger of two is always chosen.

    They are ranked by all comparisons. A rank correlation of 1 would be the very order.
    """
    ranking = rank_items(all_comparisons(rounds_of_sixty_items), draws=100)
    assert spearmanr(ranking.strength, np.arange(60)).statistic > 0.99


def test_a_pair_of_clips_is_asked_again_only_while_as_many_workers_chose_either():
    """Of the clips a and b, the worker v chose a: the pair is not asked again.

    If the worker w chose b, there is one vote for each, and a third vote would decide.
    """
    v_chose_a = ("v", "a", "b")
    w_chose_b = ("w", "b", "a")

    pairs_after_one_vote = next_pairs(["a", "b"], [v_chose_a])
    pairs_after_two_votes = next_pairs(["a", "b"], [v_chose_a, w_chose_b])

    assert pairs_after_one_vote == []
    (pair,) = pairs_after_two_votes
    assert set(pair) == {"a", "b"}


def test_pairs_of_more_than_ten_thousand_items_are_refused():
    """`next_pairs` proposes which items to compare next, here of 10,001."""
    items = [f"{number}" for number in range(10_001)]
    with pytest.raises(ProtocolError, match="10,001"):
        next_pairs(items)
