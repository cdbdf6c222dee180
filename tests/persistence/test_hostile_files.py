"""A model file that was tampered with is refused with one line, in little memory."""

import json
import pickle
import struct
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from obygaze_models.errors import ModelError
from obygaze_models.persistence.archive import CARD, npy_header
from obygaze_models.persistence.card import PROTOCOL
from obygaze_models.persistence.model_file import construct, read_model, to_state, write_model

from .model_files import GOOD, PROBE, X, about_of, card_of, edited, members, read, whole, zipped


def header_of(dtype, shape):
    text = f"{{'descr': {dtype}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    text = text.ljust(max(len(text), 118)) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


class Bomb:
    """Unpickled, it would leave a file behind."""

    def __reduce__(self):
        return (Path.touch, (Path("exploded"),))


def array_entry(shape, dtype="<f4"):
    arrays = json.loads(members()[CARD])["arrays"]
    return arrays | {"mean": {"dtype": dtype, "shape": shape}}


def parts_with(**changes):
    return zipped(members() | changes)


TAMPERED = {
    "empty": (b"", "not a whole model file"),
    "text": (b"clip_id,movie\n" * 30, "not a whole model file"),
    "truncated": (GOOD[: len(GOOD) // 2], "not a whole model file"),
    "without its end": (GOOD[:-10], "not a whole model file"),
    "a bare pickle": (pickle.dumps(Bomb()), "not a whole model file"),
    "no card": (zipped({name: data for name, data in members().items() if name != CARD}), "has no card.json"),
    "another zip": (zipped({"a.txt": b"hello"}), "has no card.json"),
    "a path that climbs": (parts_with(**{"../../evil.npy": b""}), "no name that a model's member may have"),
    "an absolute path": (parts_with(**{"/etc/evil.npy": b""}), "no name that a model's member may have"),
    "a path of Windows": (parts_with(**{"C:\\evil.npy": b""}), "no name that a model's member may have"),
    "bytes at its end": (GOOD + b"more", "bytes between or behind its members"),
    "another version of zip": (
        GOOD.replace(b"PK\x01\x02\x14", b"PK\x01\x02\x15"),
        "not as a model's is written",
    ),
    "a folder": (parts_with(**{"folder/": b""}), "no name that a model's member may have"),
    "a member twice": (zipped([*members().items(), ("mean.npy", b"")]), "has two members 'mean.npy'"),
    "two cards": (zipped([*members().items(), (CARD, b"{}")]), "has two members 'card.json'"),
    "a stowaway": (parts_with(**{"more.npy": b"123"}), "disagree about 'more.npy'"),
    "a missing array": (
        zipped({name: data for name, data in members().items() if name != "mean.npy"}),
        "disagree about 'mean.npy'",
    ),
    "compressed": (zipped(members(), zipfile.ZIP_DEFLATED), "is compressed"),
    "many members": (zipped({f"a{i}.npy": b"" for i in range(5000)}), "more members than any model"),
    "an object array": (
        parts_with(**{"mean.npy": header_of("'|O'", (3,)) + pickle.dumps(Bomb())}),
        "array 'mean'",
    ),
    "an object array of the right length": (
        parts_with(**{"mean.npy": header_of("'|O'", (3,)).ljust(len(members()["mean.npy"]), b"\0")}),
        "the header of array 'mean' is not that of <f4 [3]",
    ),
    "an object dtype in the card": (edited(arrays=array_entry([3], "|O")), "has the dtype '|O'"),
    "a structured dtype": (edited(arrays=array_entry([3], [["a", "<f4"]])), "has the dtype"),
    "code in a header": (
        parts_with(**{"mean.npy": header_of("__import__('os').getcwd()", (3,)) + bytes(12)}),
        "array 'mean'",
    ),
    "a wrong shape": (edited(arrays=array_entry([4])), "should take 144 bytes, but has 140"),
    "a huge shape": (edited(arrays=array_entry([1 << 28, 1 << 28])), "should take"),
    "many rows of no bytes": (
        zipped(
            members(edited(arrays=array_entry([1 << 50, 0]))) | {"mean.npy": npy_header("<f4", (1 << 50, 0))}
        ),
        "has the shape [1125899906842624, 0]; expected 1 to 8 lengths, above 0",
    ),
    "an endless shape": (edited(arrays=array_entry([10**4000])), "has the shape [1000000"),
    "a negative shape": (edited(arrays=array_entry([-3])), "has the shape [-3]"),
    "a true shape": (edited(arrays=array_entry([True])), "has the shape [True]"),
    "a shape of floats": (edited(arrays=array_entry([3.0])), "has the shape [3.0]"),
    "many dimensions": (edited(arrays=array_entry([1] * 1000)), "has the shape"),
    "no list of arrays": (edited(arrays=[]), "does not list its arrays"),
    "NaN": (
        parts_with(**{"mean.npy": members()["mean.npy"][:-4] + struct.pack("<f", float("nan"))}),
        "'mean' holds values that are not finite",
    ),
    "a scale of 0": (
        parts_with(**{"scale.npy": members()["scale.npy"][:-4] + bytes(4)}),
        "scale holds values that are not above 0",
    ),
    "other features": (
        edited(n_features=4),
        "reach_mean should be float64 of shape [4]",
    ),
    "endless features": (edited(n_features=10**4000), "'n_features' should be a whole number above 0"),
    "other parameters": (
        edited(parameters=card_of(PROBE).parameters | {"n_hidden": 3}),
        "need parameters of shape [16]; found [11]",
    ),
    "an unknown parameter": (
        edited(parameters=card_of(PROBE).parameters | {"dropout": 0.5}),
        "disagree about 'dropout'",
    ),
    "a parameter out of range": (
        edited(parameters=card_of(PROBE).parameters | {"patience": 0}),
        "'patience' parameter",
    ),
    "a parameter that is a list": (
        edited(parameters=card_of(PROBE).parameters | {"patience": []}),
        "'parameters' should be",
    ),
    "another kind": (edited(kind="pickle"), "'kind' should be one of linear, mlp"),
    "a kind whose arrays are others": (edited(kind="linear"), "has the arrays intercept, mean, scale"),
    "a model that nobody offers": (edited(kind="arrays", model="os:system"), "no installed package offers"),
    "skops without skops": (edited(kind="skops"), "a model of kind skops has the array skops"),
    "concepts without probabilities": (edited(concepts=["a"]), "disagree about 'concept_sigmoids'"),
    "concepts twice": (edited(concepts=["a", "a"]), "'concepts' should be a list of names that differ"),
    "no calibration": (edited(calibration={}), "disagree about 'calibration_draws'"),
    "half a calibration": (edited(calibration={"slope": 1}), "'calibration' should be an object of slope"),
    "a target in words": (edited(target="hn_s"), "'target' should be an object of name"),
    "a licence that is none": (edited(licence=""), "'licence' should be an SPDX"),
    "another format": (edited(format="skops"), "not a model of obygaze"),
    "a newer protocol": (edited(protocol_number=PROTOCOL + 1), f"model format {PROTOCOL + 1} is newer"),
    "protocol 0": (edited(protocol_number=0), "protocol_number should be a whole number above 0"),
    "protocol true": (edited(protocol_number=True), "protocol_number should be a whole number above 0"),
    "a field less": (edited(store=None), "'store' is missing"),
    "a field more": (edited(hook="rm"), "'hook' is an unknown field"),
    "a wrong digest": (edited(provenance_sha256="a" * 64), "is not what its provenance_sha256 is of"),
    "a broken provenance": (edited(provenance={}), "the card's provenance: 'name' is missing"),
    "a field of format 3 in the first": (edited(protocol_number=1), "'calibration' is an unknown field"),
    "a reach scale of 0": (
        parts_with(**{"reach_scale.npy": members()["reach_scale.npy"][:-8] + bytes(8)}),
        "reach_scale holds values that are not above 0",
    ),
    "reach out of order": (
        parts_with(**{"reach_distances.npy": members()["reach_distances.npy"][:-8] + bytes(8)}),
        "reach_distances are not in rising order",
    ),
    "a threshold in words": (edited(threshold="high"), "'threshold' should be a finite number"),
    "a card that is a list": (parts_with(**{CARD: b"[]"}), "is not an object but list"),
    "a card that is not JSON": (parts_with(**{CARD: b"{"}), "its card is not JSON"),
    "a card that is not UTF-8": (parts_with(**{CARD: b"\xff\xfe{}"}), "its card is not JSON"),
    "NaN in the card": (parts_with(**{CARD: b'{"threshold": NaN}'}), "holds NaN"),
    "infinity in disguise": (parts_with(**{CARD: b'{"threshold": 1e999}'}), "a number too large for a float"),
    "a field twice": (parts_with(**{CARD: b'{"store": 1, "store": 2}'}), "has the field 'store' twice"),
    "half a character": (parts_with(**{CARD: b'{"store": "\\ud800"}'}), "text that is not Unicode"),
    "a deep card": (parts_with(**{CARD: b'{"a":' * 50 + b"1" + b"}" * 50}), "nested more than 16 deep"),
    "an abyss": (parts_with(**{CARD: b"[" * 100_000}), "its card is not JSON"),
    "a huge number": (parts_with(**{CARD: b'{"seed": ' + b"9" * 10_000 + b"}"}), "its card is not JSON"),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_what_was_tampered_with_is_refused_in_one_line(tmp_path, monkeypatch, what):
    monkeypatch.chdir(tmp_path)
    data, message = TAMPERED[what]
    with pytest.raises(ModelError) as refused:
        read(tmp_path, data)
    said = str(refused.value)
    assert message in said
    assert said.startswith(str(tmp_path / "some.model"))
    assert len(said.splitlines()) == 1
    assert len(said) < 600
    assert [path.name for path in tmp_path.iterdir()] == ["some.model"]


@pytest.mark.parametrize("what", ["a huge shape", "endless features", "many members", "compressed"])
def test_refusing_takes_no_more_memory_than_a_few_times_the_file(tmp_path, what):
    data, _ = TAMPERED[what]
    path = tmp_path / "some.model"
    path.write_bytes(data)
    tracemalloc.start()
    try:
        with pytest.raises(ModelError):
            whole(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * len(data) + 1_000_000


def test_a_compressed_bomb_is_refused_unopened(tmp_path):
    bomb = zipped(members() | {"mean.npy": bytes(200 << 20)}, zipfile.ZIP_DEFLATED)
    assert len(bomb) < 1 << 20
    tracemalloc.start()
    try:
        with pytest.raises(ModelError, match="is compressed"):
            read(tmp_path, bomb)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5 << 20


def test_sizes_that_lie_are_refused(tmp_path):
    """The list of members claims 4 GiB for one; so do both headers of a member."""
    at = GOOD.rindex(b"PK\x01\x02")
    lying = bytearray(GOOD)
    for offset in (20, 24):
        lying[at + offset : at + offset + 4] = struct.pack("<I", 0xFFFFFFF0)
    with pytest.raises(ModelError, match=r"members claim|not a whole model file"):
        read(tmp_path, bytes(lying))


def test_a_file_larger_than_any_model_is_not_even_read(tmp_path):
    path = tmp_path / "large.model"
    with path.open("wb") as file:
        file.truncate(300 << 20)  # sparse: takes no disk
    with pytest.raises(ModelError, match="more than any model has"):
        read_model(path)


def reads_or_refuses(tmp_path, data):
    """Read, which must give a working model or a `ModelError` of one line."""
    try:
        model = read(tmp_path, data)
    except ModelError as error:
        said = str(error)
    else:
        said = "read"
        rows = X if model.card.n_features == X.shape[1] else np.zeros((1, model.card.n_features))
        assert len(construct(model).decision_function(rows)) == len(rows)
    assert len(said.splitlines()) == 1


relaxed = settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@relaxed
@given(st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), min_size=1, max_size=6))
def test_any_changed_bytes_give_a_model_or_one_clear_error(tmp_path, changes):
    data = bytearray(GOOD)
    for place, value in changes:
        data[place] = value
    reads_or_refuses(tmp_path, bytes(data))


@relaxed
@given(st.integers(0, len(GOOD)), st.integers(0, len(GOOD)), st.binary(max_size=40))
def test_any_piece_cut_out_or_put_in_gives_a_model_or_one_clear_error(tmp_path, start, stop, piece):
    reads_or_refuses(tmp_path, GOOD[:start] + piece + GOOD[stop:])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@relaxed
@given(st.sampled_from([*json.loads(members()[CARD])]), JSON)
def test_any_value_in_any_field_gives_a_model_or_one_clear_error(tmp_path, field, value):
    card = json.loads(members()[CARD]) | {field: value}
    reads_or_refuses(tmp_path, zipped(members() | {CARD: json.dumps(card).encode()}))


@relaxed
@given(st.sampled_from([*card_of(PROBE).parameters]), JSON)
def test_any_value_of_any_parameter_gives_a_model_or_one_clear_error(tmp_path, name, value):
    reads_or_refuses(tmp_path, edited(parameters=card_of(PROBE).parameters | {name: value}))


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.model"
    parts = (to_state(PROBE).arrays, about_of(PROBE))
    write_model(path, card_of(PROBE), *parts)

    def full(*_args):
        raise OSError(28, "No space left on device", "?")

    monkeypatch.setattr("obygaze_features.io.write_all", full)
    with pytest.raises(OSError, match="No space left"):
        write_model(path, card_of(PROBE, seed=1), *parts)
    assert path.read_bytes() == GOOD
    assert list(tmp_path.iterdir()) == [path]
