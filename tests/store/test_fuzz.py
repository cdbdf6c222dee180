"""Whatever a file holds, reading it succeeds or ends in an error for the user; see benchmarks/fuzz.py."""

import json
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from obygaze_features.errors import StoreError
from obygaze_features.store import open_store, read_stage, verify
from tests.process import execute

from .toy_stores import group, make_sealed_store, ragged_group

FEW_EXAMPLES = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
HARMFUL_BYTES = [
    b"\x00",
    b"\xff",
    b"\n",
    b'"',
    b",",
    b"{",
    b"]",
    b"9" * 400,
    b"-1",
    b"nan",
    b"../",
    b"[" * 2000,
    b"null",
]
EDITS_OF_BYTES = st.lists(
    st.tuples(
        st.floats(0, 1), st.integers(0, 12), st.one_of(st.sampled_from(HARMFUL_BYTES), st.binary(max_size=8))
    ),
    min_size=1,
    max_size=4,
)
ODD_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([-1, 0, 2**40, 10**400, 1.5]),
    st.sampled_from(["", "x" * 999, "../..", "\x00", "object"]),
    st.sampled_from([[], {}, [2**40, 2**40], [0], [None]]),
)


def with_edits(data, edits):
    """Change bytes by edits, each a (place, n_removed, inserted).

    At the place, a share of the length from 0 to 1, bytes are removed and others inserted.
    """
    for place, n_removed, inserted in edits:
        at = int(place * len(data))
        data = data[:at] + inserted + data[at + n_removed :]
    return data


def with_value(document, steps, value):
    """Replace one value of a document of JSON in place, and return the document.

    Each step is a number that selects an item of a list or dict, modulo its length; the steps go down from
    the document until they end, or a value has no items.
    """
    container = document
    key = key_of_step(container, steps[0])
    for step in steps[1:]:
        item = container[key]
        if not isinstance(item, dict | list) or not item:
            break
        container = item
        key = key_of_step(container, step)
    container[key] = value
    return document


def key_of_step(container, step):
    """Return the key of a dict, or the index of a list, that a step selects."""
    index = step % len(container)
    if isinstance(container, dict):
        return list(container)[index]
    return index


def assert_damage_is_refused_and_found_by_verify(path):
    """Read all arrays, which may go well or end in an error of one line; verify must find the damage."""
    try:
        store = open_store(path)
        for name in store:
            for array in (*store[name].arrays, "time_s", "frame_index"):
                store[name].raw(array)
    except StoreError as error:
        assert str(error)  # noqa: PT017 - any of several errors, or none
        assert "\n" not in str(error)  # noqa: PT017 - any of several errors, or none
    report = verify(path, "full")
    assert not report.ok


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    kinds = [group(arrays=("pooled", "tokens")), ragged_group("theirs", ("frames",))]
    return make_sealed_store(tmp_path_factory.mktemp("fuzz"), 5, kinds)


class ChangedFiles:
    """Files that hold other bytes until the test ends."""

    def __init__(self):
        self.originals = {}

    def original(self, path):
        return self.originals.setdefault(path, path.read_bytes())

    def write(self, path, data):
        self.original(path)
        path.write_bytes(data)

    def restore(self):
        for path, data in self.originals.items():
            path.write_bytes(data)


@pytest.fixture
def changed_files():
    files = ChangedFiles()
    yield files
    files.restore()


ZARR = "data/features.zarr"
NODES_OF_ZARR = ["", "/toy", "/toy/pooled", "/toy/clip", "/theirs/frames", "/theirs/row_size"]
FILES = [
    *(
        f"{ZARR}/{name}"
        for name in ("zarr.json", "toy/clip/c/0", "theirs/row_size/c/0", "theirs/frames/c/0/0")
    ),
    *("data/clips.csv", "bag-info.txt", "manifest-sha256.txt"),
]


@pytest.mark.long
@pytest.mark.hypothesis
@pytest.mark.parametrize("file", FILES)
@FEW_EXAMPLES
@given(edits=EDITS_OF_BYTES)
def test_random_damage_to_a_store_file_is_found_by_verify(store, changed_files, file, edits):
    """In one file of a store of five clips, up to four edits each remove some bytes and insert others.

    Reading the arrays succeeds where the damage is elsewhere, and is else refused in one line. `verify`
    compares every file with its digest, and always finds the damage.
    """
    good = changed_files.original(store / file)
    damaged = with_edits(good, edits)
    assume(damaged != good)
    changed_files.write(store / file, damaged)

    assert_damage_is_refused_and_found_by_verify(store)


@pytest.mark.long
@pytest.mark.hypothesis
@pytest.mark.parametrize("node", NODES_OF_ZARR)
@FEW_EXAMPLES
@given(steps_to_value=st.lists(st.integers(0, 20), min_size=1, max_size=7), odd_value=ODD_VALUES)
def test_odd_values_in_the_metadata_are_found_by_verify(
    store, changed_files, node, steps_to_value, odd_value
):
    """Every node of a store (its root, a group, an array) has metadata in a JSON file of its own.

    One value in it, which is reached by the numbers of its fields from the outermost on, becomes null, a
    huge number, "../.." or the like. Reading succeeds or is refused in one line; `verify` finds the change.
    """
    path = store / f"{ZARR}{node}/zarr.json"
    document = json.loads(changed_files.original(path))
    damaged = with_value(document, steps_to_value, odd_value)
    changed_files.write(path, json.dumps(damaged).encode())

    assert_damage_is_refused_and_found_by_verify(store)


def read_whole_stage(folder):
    """Read the plan, what is done, and what is damaged."""
    stage = read_stage(folder)
    stage.missing()
    stage.damage()


@pytest.mark.hypothesis
@pytest.mark.parametrize("file", ["plan.jsonl", "journal/*.jsonl", "stage.json"])
@FEW_EXAMPLES
@given(edits=EDITS_OF_BYTES)
def test_a_damaged_file_of_a_stage_reads_or_is_refused_in_one_line(store, changed_files, file, edits):
    """Up to four edits of a file of a stage each remove some bytes and insert others.

    A stage has no list of digests, so damage may go unnoticed. But no other error than a StoreError, of one
    line, may be raised.
    """
    folder_of_stage = store.with_name("toy.staging")
    (path,) = folder_of_stage.glob(file)
    damaged = with_edits(changed_files.original(path), edits)
    changed_files.write(path, damaged)

    try:
        read_whole_stage(folder_of_stage)
    except StoreError as error:
        assert "\n" not in str(error)  # noqa: PT017 - any of several errors, or none


@pytest.mark.long
@pytest.mark.nightly
def test_hostile_files_of_every_kind_end_in_no_finding():
    """benchmarks/fuzz.py changes files of six kinds, and has every reader of a kind read them.

    A finding is a file at which a reader crashes or waits. For each kind a line says how many there were.
    """
    kinds = ["manifest", "npy", "hdf5", "zip", "model", "names"]
    fuzz = Path(__file__).parents[2] / "benchmarks" / "fuzz.py"
    # A number of inputs, not a time: otherwise a fast machine would try inputs that no other one has tried.
    process = execute(sys.executable, str(fuzz), *kinds, "--inputs", "120", code=None)
    assert process.stdout.count(" 0 findings") == len(kinds), process.stdout + process.stderr
