"""Jobs that divide a stage agree on the number of shares, and no share is forgotten without a word."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from obygaze_features.errors import StoreError
from obygaze_features.machine import Machine
from obygaze_features.store.shares import (
    begin_share,
    check_shares,
    finish_share,
    number_of_shares,
    shares_elsewhere,
    shares_not_begun,
    shown_shares,
)

# Two machines of a cluster "alpha", one of a cluster "beta", and one outside of any cluster.
ALPHA, ALPHA_TOO, BETA = Machine("alpha", "n1"), Machine("alpha", "n2"), Machine("beta", "n1")
OF_NO_CLUSTER = Machine("", "desk")


def test_the_first_share_that_is_begun_decides_the_number_of_shares(tmp_path):
    """A share is (number, of how many): share 3 of 8 is begun, and 7 shares are not.

    A job that was killed begins the same share again, which changes nothing.
    """
    assert number_of_shares(tmp_path) is None

    begin_share(tmp_path, (3, 8), ALPHA)
    assert number_of_shares(tmp_path) == 8
    assert shares_not_begun(tmp_path) == [0, 1, 2, 4, 5, 6, 7]

    begin_share(tmp_path, (3, 8), ALPHA)
    assert number_of_shares(tmp_path) == 8
    assert shares_not_begun(tmp_path) == [0, 1, 2, 4, 5, 6, 7]


@pytest.mark.parametrize("refuse", [check_shares, begin_share])
def test_a_share_of_another_number_of_shares_is_refused(tmp_path, refuse):
    """Shares of 8 and of 16 would overlap: some clips would be done twice and others by nobody.

    Both functions refuse: the one that only checks a share, and the one that begins it.
    """
    begin_share(tmp_path, (3, 8), ALPHA)

    with pytest.raises(StoreError, match="8 shares"):
        refuse(tmp_path, (3, 16), ALPHA)


def test_a_process_that_does_everything_may_join_divided_work(tmp_path):
    """Share 0 of 1 is the whole stage, and leaves out no clip, so it does not clash with 2 shares."""
    begin_share(tmp_path, (0, 2), ALPHA)

    check_shares(tmp_path, (0, 1), ALPHA)  # raises no error


def begin_at_once(stage, shares):
    """Begin all shares at the same moment, each in a thread; return those that were accepted."""
    begun = set()

    def begin_if_accepted(share):
        try:
            begin_share(stage, share, ALPHA)
        except StoreError:
            return
        begun.add(share)

    with ThreadPoolExecutor(len(shares)) as pool:
        list(pool.map(begin_if_accepted, sorted(shares)))
    return begun


def test_only_one_number_of_shares_is_accepted_at_once(tmp_path):
    """A share is (number, of how many): four of 4 and four of 6 are begun at the same moment.

    Shares of 4 and of 6 would overlap, so one of the two numbers wins: all its shares begin, and none of the
    other number. Which one wins is open.
    """
    shares_of_4 = {(0, 4), (1, 4), (2, 4), (3, 4)}
    shares_of_6 = {(0, 6), (1, 6), (2, 6), (3, 6)}

    begun = begin_at_once(tmp_path, shares_of_4 | shares_of_6)

    shares_of_winner = {4: shares_of_4, 6: shares_of_6}
    assert begun == shares_of_winner[number_of_shares(tmp_path)]


@pytest.mark.parametrize(
    ("shares", "shown"), [([], ""), ([3], "3"), ([0, 1, 2, 5, 7, 8], "0-2,5,7-8"), ([1, 3], "1,3")]
)
def test_shares_are_written_as_slurm_reads_them(shares, shown):
    """The text fits `sbatch --array`: ranges with a dash, separated by commas."""
    assert shown_shares(shares) == shown


@pytest.mark.parametrize(("file", "content"), [("number", b"two"), ("0", b"{")])
def test_a_damaged_note_of_shares_is_named(tmp_path, file, content):
    """Work is divided into 2 shares; a machine of cluster alpha begins share 0, which notes two things.

    In the folder `shares` of the stage, the file `number` says how many shares there are, and the file `0`
    who began share 0. One of the two is damaged. A machine of cluster beta then asks whether it may begin
    share 1. This cannot be answered, and the error names the damaged file.
    """
    begin_share(tmp_path, (0, 2), ALPHA)
    (tmp_path / "shares" / file).write_bytes(content)

    with pytest.raises(StoreError, match=f"shares/{file}"):
        check_shares(tmp_path, (1, 2), BETA)


@pytest.fixture
def two_clusters(tmp_path):
    """A stage in four shares: cluster alpha has begun 0 and 2, beta 1, and nobody 3."""
    begin_share(tmp_path, (0, 4), ALPHA)
    begin_share(tmp_path, (2, 4), ALPHA)
    begin_share(tmp_path, (1, 4), BETA)
    return tmp_path


@pytest.mark.parametrize("machine", [ALPHA_TOO, OF_NO_CLUSTER], ids=["of the same cluster", "of no cluster"])
def test_a_share_may_be_begun_again_by_its_cluster(two_clusters, machine):
    """Share 0 was begun by a machine of cluster alpha. Another of alpha may begin it, and the first again.

    A machine outside any cluster, such as a desktop, may also begin it again.
    """
    begin_share(two_clusters, (0, 4), machine)  # raises no error
    begin_share(two_clusters, (0, 4), ALPHA)


def test_a_share_that_another_cluster_has_begun_is_refused_until_it_is_done(two_clusters):
    """Two clusters cannot see each other's jobs, so each share belongs to the one that began it.

    Cluster alpha has begun shares 0 and 2 of 4, and beta share 1.
    """
    with pytest.raises(StoreError, match=r"cluster alpha .* shares 0,2 of 4, .* cluster beta"):
        begin_share(two_clusters, (2, 4), BETA)

    finish_share(two_clusters, (2, 4), ALPHA)
    begin_share(two_clusters, (2, 4), BETA)  # raises no error


def test_a_refusal_names_the_shares_that_are_left_to_the_cluster(two_clusters):
    """Of four shares beta has begun 1, alpha 0 and 2, and nobody 3: alpha may run 0, 2 and 3."""
    with pytest.raises(StoreError, match="--array=0,2-3"):
        check_shares(two_clusters, (1, 4), ALPHA)


def test_shares_of_other_clusters_are_listed_but_not_to_a_machine_of_none(two_clusters):
    """An extraction is divided into shares. The cluster alpha has begun the shares 0 and 2.

    Whoever would begin one on the cluster beta is told that it is elsewhere. On a machine of no cluster
    nothing tells that it is another place, so none is listed.
    """
    assert list(shares_elsewhere(two_clusters, BETA)) == [0, 2]
    assert shares_elsewhere(two_clusters, OF_NO_CLUSTER) == {}


def test_deleting_the_note_of_a_share_lets_another_cluster_take_it(tmp_path):
    """The refusal names the folder of notes, so that the share of a dead cluster can be taken over."""
    begin_share(tmp_path, (1, 2), ALPHA)
    with pytest.raises(StoreError) as refused:
        begin_share(tmp_path, (1, 2), BETA)
    folder_of_notes = tmp_path / "shares"
    assert str(folder_of_notes) in str(refused.value)

    note_of_share_1 = folder_of_notes / "1"
    note_of_share_1.unlink()

    begin_share(tmp_path, (1, 2), BETA)  # raises no error


def test_if_two_clusters_begin_the_same_share_at_once_one_of_them_is_refused(tmp_path):
    """Eight threads begin share 3 of 4 sixteen times, for the clusters alpha and beta in turn.

    A share belongs to the cluster that begins it first: all attempts of one cluster succeed, and all of the
    other are refused. Which cluster it is, is open. Share 0 was begun before, so that the number of shares is
    known, and the threads compete for share 3 alone.
    """
    begin_share(tmp_path, (0, 4), OF_NO_CLUSTER)
    clusters_that_began = set()

    def begin_if_accepted(machine):
        try:
            begin_share(tmp_path, (3, 4), machine)
        except StoreError:
            return
        clusters_that_began.add(machine.cluster)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(begin_if_accepted, [ALPHA, BETA] * 8))

    assert len(clusters_that_began) == 1
