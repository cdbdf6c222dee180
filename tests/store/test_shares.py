"""Jobs that divide a stage agree on the number of shares, and no share is forgotten without a word."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from obygaze_features.errors import StoreError
from obygaze_features.store.shares import (
    begin_share,
    check_shares,
    number_of_shares,
    shares_not_begun,
    shown_shares,
)


def test_the_first_share_decides_the_number_and_the_others_keep_it(tmp_path):
    assert number_of_shares(tmp_path) is None
    begin_share(tmp_path, (3, 8))
    begin_share(tmp_path, (3, 8))
    assert number_of_shares(tmp_path) == 8
    for refuse in (check_shares, begin_share):
        with pytest.raises(StoreError, match="8 shares"):
            refuse(tmp_path, (3, 16))
    assert shares_not_begun(tmp_path) == [0, 1, 2, 4, 5, 6, 7]


def test_one_process_that_does_everything_is_no_division(tmp_path):
    begin_share(tmp_path, (0, 2))
    check_shares(tmp_path, (0, 1))


def test_of_two_divisions_at_once_one_is_refused(tmp_path):
    def begin(shard):
        try:
            begin_share(tmp_path, shard)
        except StoreError:
            return False
        return True

    shards = [(share, number) for share in range(4) for number in (4, 6)]
    with ThreadPoolExecutor(8) as pool:
        begun = {shard for shard, done in zip(shards, pool.map(begin, shards), strict=True) if done}
    number = number_of_shares(tmp_path)
    assert begun == {shard for shard in shards if shard[1] == number}


@pytest.mark.parametrize(
    ("shares", "shown"), [([], ""), ([3], "3"), ([0, 1, 2, 5, 7, 8], "0-2,5,7-8"), ([1, 3], "1,3")]
)
def test_shares_are_written_as_slurm_reads_them(shares, shown):
    assert shown_shares(shares) == shown


def test_a_damaged_number_is_named(tmp_path):
    begin_share(tmp_path, (0, 2))
    (tmp_path / "shares" / "number").write_bytes(b"two")
    with pytest.raises(StoreError, match="number"):
        check_shares(tmp_path, (1, 2))
