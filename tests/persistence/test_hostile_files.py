"""A model file that was tampered with is refused with one line, in little memory."""

import json
import os
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
from obygaze_models.persistence.archive import CARD, MAX_CARD
from obygaze_models.persistence.card import PROTOCOL
from obygaze_models.persistence.model_file import construct, pack, read_model

from .model_files import (
    MODEL_FILE,
    PROBE,
    X,
    card_of_probe,
    members_of,
    model_file_with,
    model_file_with_card,
    read_and_construct,
    read_and_construct_bytes,
    zip_archive_of,
)

FIELDS_OF_CARD = json.loads(members_of()[CARD])


def npy_header(dtype, shape):
    """Write the header of a .npy file of format 1.0, whatever dtype and shape say."""
    text = f"{{'descr': {dtype}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    text = text.ljust(max(len(text), 118)) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


class LeavesAFileIfUnpickled:
    """An object whose pickle runs code: it makes a file `exploded` in the working folder."""

    def __reduce__(self):
        return (Path.touch, (Path("exploded"),))


def arrays_with_mean(shape, dtype="<f4"):
    """Return the card's list of arrays, in which `mean` has this shape and dtype."""
    return FIELDS_OF_CARD["arrays"] | {"mean": {"dtype": dtype, "shape": shape}}


def model_file_with_end(member, end):
    """Return the bytes of a model file in which the last bytes of a member are `end`."""
    return model_file_with({member: members_of()[member][: -len(end)] + end})


TAMPERED = {
    "empty": b"",
    "truncated": MODEL_FILE[: len(MODEL_FILE) // 2],
    "without its end": MODEL_FILE[:-10],
    "a bare pickle": pickle.dumps(LeavesAFileIfUnpickled()),
    "no card": zip_archive_of({name: data for name, data in members_of().items() if name != CARD}),
    "a path that climbs": model_file_with({"../../evil.npy": b""}),
    "a member twice": zip_archive_of([*members_of().items(), ("mean.npy", b"")]),
    "a stowaway": model_file_with({"more.npy": b"123"}),
    "a missing array": zip_archive_of(
        {name: data for name, data in members_of().items() if name != "mean.npy"}
    ),
    "compressed": zip_archive_of(members_of(), zipfile.ZIP_DEFLATED),
    "a bomb": zip_archive_of(members_of() | {"mean.npy": bytes(50 << 20)}, zipfile.ZIP_DEFLATED),
    "many members": zip_archive_of({f"a{i}.npy": b"" for i in range(5000)}),
    "an object array": model_file_with(
        {"mean.npy": npy_header("'|O'", (3,)) + pickle.dumps(LeavesAFileIfUnpickled())}
    ),
    "an object dtype in the card": model_file_with_card(arrays=arrays_with_mean([3], "|O")),
    "a structured dtype": model_file_with_card(arrays=arrays_with_mean([3], [["a", "<f4"]])),
    "code in a header": model_file_with(
        {"mean.npy": npy_header("__import__('os').getcwd()", (3,)) + bytes(12)}
    ),
    "a wrong shape": model_file_with_card(arrays=arrays_with_mean([4])),
    "a huge shape": model_file_with_card(arrays=arrays_with_mean([1 << 28, 1 << 28])),
    "a negative shape": model_file_with_card(arrays=arrays_with_mean([-3])),
    "no list of arrays": model_file_with_card(arrays=[]),
    "NaN": model_file_with_end("mean.npy", struct.pack("<f", float("nan"))),
    "a scale of 0": model_file_with_end("scale.npy", bytes(4)),
    "other features": model_file_with_card(n_features=4),
    "other parameters": model_file_with_card(parameters=card_of_probe(PROBE).parameters | {"n_hidden": 3}),
    "an unknown parameter": model_file_with_card(
        parameters=card_of_probe(PROBE).parameters | {"dropout": 0.5}
    ),
    "a parameter out of range": model_file_with_card(
        parameters=card_of_probe(PROBE).parameters | {"patience": 0}
    ),
    "another kind": model_file_with_card(kind="pickle"),
    "a kind whose arrays are others": model_file_with_card(kind="linear"),
    "a model that nobody offers": model_file_with_card(kind="arrays", model="os:system"),
    "skops without skops": model_file_with_card(kind="skops"),
    "concepts without probabilities": model_file_with_card(concepts=["a"]),
    "no calibration": model_file_with_card(calibration={}),
    "probabilities upside down": model_file_with_card(
        calibration=FIELDS_OF_CARD["calibration"] | {"p_skilled": -1.0}
    ),
    "half of an error": model_file_with_card(calibration={"p_skilled": 0.5, "error": 0.1, "film_error": 0.1}),
    "evidence of nothing": model_file_with_card(evidence={"n_clips": 7}),
    "evidence in words": model_file_with_card(evidence=FIELDS_OF_CARD["evidence"] | {"auc": "high"}),
    "a metric of no task": model_file_with_card(
        metrics=[{"metric": "qwk", "n_movies": 2, "movie_mean": 0.5}]
    ),
    "a metric in words": model_file_with_card(
        metrics=[{"metric": "qwk", "task": "t", "n_movies": 2, "movie_mean": 0.5, "movie_chance": "none"}]
    ),
    "a card larger than any": model_file_with({CARD: members_of()[CARD] + b" " * MAX_CARD}),
    "a target in words": model_file_with_card(target="hn_s"),
    "a licence that is none": model_file_with_card(licence=""),
    "another format": model_file_with_card(format="skops"),
    "protocol 0": model_file_with_card(protocol_number=0),
    "a field less": model_file_with_card(store=None),
    "a field more": model_file_with_card(hook="rm"),
    "a wrong digest": model_file_with_card(provenance_sha256="a" * 64),
    "a broken provenance": model_file_with_card(provenance={}),
    "an older protocol": model_file_with_card(protocol_number=PROTOCOL - 1),
    "an older protocol whose task is a line of code": model_file_with_card(
        protocol_number=1, target={"name": "x; rm -r y"}
    ),
    "films of rows that are none": model_file_with_end("trained_row_films.npy", struct.pack("<q", 127)),
    "no digests of rows": model_file_with_card(
        arrays={name: entry for name, entry in FIELDS_OF_CARD["arrays"].items() if "trained" not in name}
    ),
    "a reach scale of 0": model_file_with_end("reach_scale.npy", bytes(8)),
    "reach out of order": model_file_with_end("reach_distances.npy", bytes(8)),
    "a threshold in words": model_file_with_card(threshold="high"),
    "a card that is a list": model_file_with({CARD: b"[]"}),
    "a card that is not JSON": model_file_with({CARD: b"{"}),
    "a card that is not UTF-8": model_file_with({CARD: b"\xff\xfe{}"}),
    "NaN in the card": model_file_with({CARD: b'{"threshold": NaN}'}),
    "infinity in disguise": model_file_with({CARD: b'{"threshold": 1e999}'}),
    "half a character": model_file_with({CARD: b'{"store": "\\ud800"}'}),
    "a deep card": model_file_with({CARD: b'{"a":' * 50 + b"1" + b"}" * 50}),
    "an abyss": model_file_with({CARD: b"[" * 100_000}),
    "a huge number": model_file_with({CARD: b'{"seed": ' + b"9" * 10_000 + b"}"}),
    "a newer protocol": model_file_with_card(protocol_number=PROTOCOL + 1),
    "many rows of no bytes": model_file_with_card(arrays=arrays_with_mean([1 << 50, 0])),
}


@pytest.mark.parametrize("case", TAMPERED)
def test_what_was_tampered_with_is_refused_in_one_line(tmp_path, monkeypatch, case):
    """`TAMPERED` has the bytes of model files that somebody made to do harm, or that are damaged.

    The error begins with the path. No code of the file runs, which would leave another file in the folder.
    """
    monkeypatch.chdir(tmp_path)

    with pytest.raises(ModelError) as refusal:
        read_and_construct_bytes(tmp_path, TAMPERED[case])

    message = str(refusal.value)
    assert message.startswith(str(tmp_path / "some.model"))
    assert "\n" not in message
    assert len(message) < 600
    assert [path.name for path in tmp_path.iterdir()] == ["some.model"]


def zipped_by_version_21(archive):
    """Change the version of the tool that zipped an archive, which its directory has, from 20 to 21."""
    begin_of_entry = b"PK\x01\x02"
    return archive.replace(begin_of_entry + bytes([20]), begin_of_entry + bytes([21]))


@pytest.mark.parametrize(
    "zipped_otherwise",
    [MODEL_FILE + b"more", zipped_by_version_21(MODEL_FILE)],
    ids=["bytes after the archive", "another version of the zip tool"],
)
def test_an_archive_that_was_zipped_otherwise_holds_the_same_model(tmp_path, zipped_otherwise):
    """A model file is a zip archive. What counts are its members: written again, it has our own bytes."""
    assert zipped_otherwise != MODEL_FILE

    model = read_and_construct_bytes(tmp_path, zipped_otherwise)

    assert pack(model.card, model.arrays, model.other_arrays) == MODEL_FILE


@pytest.mark.parametrize("case", ["a huge shape", "many members", "compressed", "a bomb"])
def test_refusing_takes_no_more_memory_than_a_few_times_the_file(tmp_path, case):
    """Such a file, of those in TAMPERED, says that it is very large, or is when it is unpacked.

    It is read by blocks of 1 MiB, so 2 MB are allowed besides four times the size of the file.
    """
    content = TAMPERED[case]
    path = tmp_path / "some.model"
    path.write_bytes(content)

    tracemalloc.start()
    try:
        with pytest.raises(ModelError):
            read_and_construct(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 4 * len(content) + 2_000_000


WINDOWS_HAS_NO_PIPES_IN_FOLDERS = pytest.mark.skipif(
    os.environ.get("SIMULATED", os.name) in {"windows", "nt"},
    reason="Windows has no pipes and devices in folders",
)


@WINDOWS_HAS_NO_PIPES_IN_FOLDERS
def test_a_pipe_is_refused_without_being_read(tmp_path):
    """Nobody writes into the pipe, so that reading it would not end."""
    pipe = tmp_path / "a.model"
    os.mkfifo(pipe)

    with pytest.raises(ModelError, match="a pipe or a device"):
        read_model(pipe)


@WINDOWS_HAS_NO_PIPES_IN_FOLDERS
def test_a_device_is_refused_without_being_read():
    """The device has zeros without end."""
    with pytest.raises(ModelError, match="a pipe or a device"):
        read_model(Path("/dev/zero"))


@pytest.mark.long
def test_a_file_larger_than_any_model_is_refused(tmp_path):
    """The file has 300 MB, which take no disk, as nothing is written."""
    path = tmp_path / "large.model"
    with path.open("wb") as file:
        file.truncate(300 * 2**20)

    with pytest.raises(ModelError):
        read_model(path)


def test_a_pointer_of_git_lfs_is_refused_with_its_name(tmp_path):
    """Git LFS leaves such a text in place of a large file that was not fetched."""
    path = tmp_path / "large.model"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")

    with pytest.raises(ModelError, match="git-lfs"):
        read_model(path)


def assert_is_read_or_refused_in_one_line(tmp_path, content):
    """Hold that bytes give a model that scores clips, or a `ModelError` of one line."""
    try:
        model = read_and_construct_bytes(tmp_path, content)
    except ModelError as error:
        assert "\n" not in str(error)  # noqa: PT017 - either is right
        return
    rows = X if model.card.n_features == X.shape[1] else np.zeros((1, model.card.n_features))
    assert len(construct(model).decision_function(rows)) == len(rows)


with_200_examples = settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


PLACES_OF_BYTES = st.integers(0, len(MODEL_FILE) - 1)


@with_200_examples
@given(changes=st.lists(st.tuples(PLACES_OF_BYTES, st.integers(0, 255)), min_size=1, max_size=6))
def test_any_changed_bytes_give_a_model_or_one_clear_error(tmp_path, changes):
    """One to six bytes of a model file, at any places, get other values: (place, value)."""
    content = bytearray(MODEL_FILE)
    for place, value in changes:
        content[place] = value

    assert_is_read_or_refused_in_one_line(tmp_path, bytes(content))


@with_200_examples
@given(
    start=st.integers(0, len(MODEL_FILE)), stop=st.integers(0, len(MODEL_FILE)), piece=st.binary(max_size=40)
)
def test_any_piece_replaced_repeated_or_put_in_gives_a_model_or_one_clear_error(tmp_path, start, stop, piece):
    """Up to 40 bytes are put in place of those from `start` to `stop` of a model file.

    Where `stop` is before `start`, the bytes between them come twice.
    """
    content = MODEL_FILE[:start] + piece + MODEL_FILE[stop:]

    assert_is_read_or_refused_in_one_line(tmp_path, content)


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.long
@with_200_examples
@given(field=st.sampled_from([*FIELDS_OF_CARD]), value=ANY_JSON)
def test_any_value_in_any_field_of_the_card_gives_a_model_or_one_clear_error(tmp_path, field, value):
    """The card in a model's file is JSON. Of a sound one, a field gets any value that JSON can have."""
    card = FIELDS_OF_CARD | {field: value}
    content = model_file_with({CARD: json.dumps(card).encode()})

    assert_is_read_or_refused_in_one_line(tmp_path, content)


@pytest.mark.long
@with_200_examples
@given(parameter=st.sampled_from([*card_of_probe(PROBE).parameters]), value=ANY_JSON)
def test_any_value_of_any_parameter_gives_a_model_or_one_clear_error(tmp_path, parameter, value):
    """The card has the parameters of the model, such as the number of hidden units. One gets any value."""
    parameters = card_of_probe(PROBE).parameters | {parameter: value}
    content = model_file_with_card(parameters=parameters)

    assert_is_read_or_refused_in_one_line(tmp_path, content)
