"""If two workers contradict each other, nothing tells which of them judges at random, or how items rank."""

from itertools import combinations

import numpy as np

from obygaze_models.evaluation.ranking import rank_items

ITEMS = [f"item{number:02d}" for number in range(10)]
PAIRS = list(combinations(ITEMS, 2))


def rising(worker):
    """Return the worker's judgement of all pairs: the later item is the stronger one."""
    return [(worker, later, earlier) for earlier, later in PAIRS]


def falling(worker):
    """Return the worker's judgement of all pairs: the earlier item is the stronger one."""
    return [(worker, earlier, later) for earlier, later in PAIRS]


def test_two_workers_who_contradict_each_other_leave_open_who_is_reliable_and_how_items_rank():
    """Of each two of ten items, anna finds the later one stronger, and ben the earlier one.

    Either may be right. So neither is said to judge at random: the interval of each one's reliability must
    reach from below .2 to above .8. And the first item may be the strongest or the weakest, as may the last:
    their ranks must reach from 2 or less to 9 or more. Estimates by random draws that begin with one worker
    in the right, and stay there, would be narrower.
    """
    ranking = rank_items(rising("anna") + falling("ben"))

    assert not ranking.workers["random"].any()
    assert (ranking.workers["low"] < 0.2).all()
    assert (ranking.workers["high"] > 0.8).all()
    first_and_last = np.array([0, -1])
    assert (ranking.rank_low[first_and_last] <= 2).all()
    assert (ranking.rank_high[first_and_last] >= 9).all()


def test_a_third_worker_decides_which_of_two_opposite_workers_is_right():
    """Of each two of ten items, anna and chris find the later one stronger, and ben the earlier one.

    So ben must be said to judge at random, anna and chris must be right in more than half of their judgements
    (the lower end of the interval of their reliability), and the last item must rank first.
    """
    ranking = rank_items(rising("anna") + falling("ben") + rising("chris"), draws=300)

    workers = ranking.workers.set_index("worker")
    assert workers.loc["ben", "random"]
    assert workers.loc[["anna", "chris"], "low"].min() > 0.5
    last_item = -1
    assert ranking.rank[last_item] == 1


def test_a_worker_who_is_known_to_be_reliable_is_believed_against_an_opposite_one():
    """Of each two of ten items, anna finds the later one stronger and ben the earlier one.

    Nothing else tells who is right, but that ben is named as a master: the first item must rank first.
    """
    ranking = rank_items(rising("anna") + falling("ben"), masters=["ben"], draws=300)

    first_item = 0
    assert ranking.rank[first_item] == 1
