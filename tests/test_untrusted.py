"""What strangers may have made is read by one door: nothing is waited for, and nothing takes all memory."""

import io
import os
import shutil
import socket
import sys
import tracemalloc
from codecs import BOM_UTF8
from collections.abc import Callable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import obygaze_film
import obygaze_models as om
from obygaze_features import untrusted
from obygaze_features.errors import InputError, LinkError, ObygazeError
from obygaze_features.exchange.import_tables import table_items
from obygaze_features.manifest import import_spans, load_codebook, read_manifest, read_subtitles
from obygaze_features.store import open_store
from obygaze_features.untrusted import (
    open_regular,
    parse_json,
    parse_toml,
    read_bytes,
    read_text,
)
from obygaze_models.persistence.zoo_list import read_zoo
from tests.process import execute

TESTS = Path(__file__).parent
ROOT = TESTS.parent
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="pipes and devices have no names there")

HEAD = "clip_id,movie,video,start_s,end_s,level,concepts,annotator"
LEVELS = "".join(f'[[levels]]\nname = "{name}"\n' for name in ("calm", "violent"))
EAF = """<?xml version="1.0"?><ANNOTATION_DOCUMENT><TIME_ORDER/>
<TIER TIER_ID="AB: level" LINGUISTIC_TYPE_REF="t"/></ANNOTATION_DOCUMENT>"""


def spans(path):
    return import_spans([path], path.parent)


TEXTS = {
    "fights.codebook.toml": (f'name = "fights"\nversion = "1"\n{LEVELS}', load_codebook),
    "films.csv": (f"{HEAD}\nabcd,film,a.mp4,1,2,EN,,\n", read_manifest),
    "judged.csv": (f"{HEAD},seen_score\na,film,,0,5,EN,,AB,1\n", spans),
    "a.eaf": (EAF, spans),
    "a.TextGrid": ('File type = "ooTextFile"\nObject class = "TextGrid"\n', spans),
    "a.rttm": ("SPEAKER film 1 1.00 2.00 <NA> <NA> AB <NA> <NA>\n", spans),
    "a.srt": ("1\n00:00:01,000 --> 00:00:02,000\nhello there\n", read_subtitles),
    "a.sums": ("no sums", om.read_sums),
    "table.csv": ("clip_id,f0,f1\na,0.5,1\n", lambda path: table_items(path, ids=None).__enter__()),
    "zoo.toml": (
        (ROOT / "obygaze_models/zoo/zoo.toml").read_text("utf-8"),
        lambda path: read_zoo(path.parent),
    ),
    "film/film.json": (
        '{"movie": "film", "models": []}',
        lambda path: obygaze_film.read_films([path.parent]),
    ),
    "run/run.json": ('{"n_classes": 2}', lambda path: om.read_run(path.parent)),
}
FOLDERS = {
    "a.model": (TESTS / "persistence/frozen/protocol_4_attentive.model", om.load_model),
    "store/data/features.zarr/zarr.json": (
        TESTS / "store/frozen/format-1.2-1.0.0",
        lambda path: open_store(path.parents[2]),
    ),
}


def with_a_value_replaced(new):
    """Return what writes a good file with these bytes in place of one letter or digit.

    It is the first one past a third of the file: behind its head, so in a value or a name of the content.
    """

    def write(path, good):
        place = 0
        for number, byte in enumerate(good):
            if number > len(good) // 3 and chr(byte).isalnum():
                place = number
                break
        path.write_bytes(good[:place] + new + good[place + 1 :])

    return write


def make_sparse_file(path, _):
    """Make a file of 8 GB of zeros, which take no place on the disk."""
    with path.open("wb") as file:
        file.truncate(8 << 30)


def with_a_flipped_bit(data):
    """Turn a bit of the byte in the middle."""
    flipped = bytearray(data)
    flipped[len(data) // 2] ^= 0x10
    return bytes(flipped)


ENDLESS = {
    "a pipe": lambda path, _: os.mkfifo(path),
    "/dev/zero": lambda path, _: path.symlink_to("/dev/zero"),
    "eight sparse gigabytes": make_sparse_file,
}
"""What makes a file that never ends, or is of an immense size, by its name."""
SMALL = {
    "dots": lambda path, _: path.write_text("a" + ".a" * 20_000 + " = 1\n"),
    "brackets": lambda path, _: path.write_text("[" * 100_000),
    "NaN": with_a_value_replaced(b"NaN"),
    "1e300": with_a_value_replaced(b"1e300"),
    "right to left": with_a_value_replaced("\u202e".encode()),
    "a path": with_a_value_replaced(b"../x"),
    "empty": lambda path, _: path.write_bytes(b""),
    "cut": lambda path, good: path.write_bytes(good[: len(good) // 2]),
    "flipped": lambda path, good: path.write_bytes(with_a_flipped_bit(good)),
}
"""What makes a small file of odd content at a path, of the bytes of a good one, by its name."""


class TakenAway(NamedTuple):
    """A good file that was laid out, with what it needs beside it, and was taken away again."""

    path: Path
    good_bytes: bytes
    read: Callable[[Path], object]
    """The function of ours that reads such a file."""


def lay_out_and_take_away(folder, name):
    """Lay out the good file of a name of `NAMES`, such as films.csv, and remove it."""
    path = folder / name
    if name in TEXTS:
        text, reader = TEXTS[name]
        path.parent.mkdir(exist_ok=True)
        (path.parent / "predictions.csv").write_text("")
        path.write_text(text, encoding="utf-8")
    else:
        source, reader = FOLDERS[name]
        if source.is_file():
            shutil.copy(source, path)
        else:
            shutil.copytree(source, folder / Path(name).parts[0])
    good = path.read_bytes()
    path.unlink()
    return TakenAway(path, good, reader)


NAMES = [*TEXTS, *FOLDERS]


@pytest.mark.long
@POSIX
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ENDLESS)
def test_a_pipe_a_device_and_a_sparse_file_are_refused_at_once(tmp_path, name, kind):
    """One of them stands in the place of a file that a user gives to a function, such as `read_manifest`.

    The function ends, and says which file it is.
    """
    file = lay_out_and_take_away(tmp_path, name)
    make_endless_file = ENDLESS[kind]
    make_endless_file(file.path, file.good_bytes)

    with pytest.raises((ObygazeError, OSError)) as error:
        file.read(file.path)
    assert file.path.name in str(error.value)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("oddity", SMALL)
def test_odd_content_is_read_or_refused_in_one_line(tmp_path, name, oddity):
    """A good file is changed, such as by NaN in the place of a digit, or replaced, such as by brackets.

    The function that reads it gives a result, or raises an error of ours, and no other error.
    """
    file = lay_out_and_take_away(tmp_path, name)
    make_odd_file = SMALL[oddity]
    make_odd_file(file.path, file.good_bytes)

    try:
        file.read(file.path)
    except ObygazeError as error:
        assert "\n" not in str(error)  # noqa: PT017 - it may be read as well


@pytest.mark.parametrize("name", TEXTS)
def test_a_byte_order_mark_at_the_beginning_changes_nothing(tmp_path, name):
    """Programs of Windows write such a mark (three bytes) before a text in UTF-8.

    TEXTS has a small text of each kind that is read from people: a codebook, a manifest, subtitles and so on.
    Some are refused, as incomplete. With the mark each gives a result of the same type, or the same error, as
    without it.
    """
    file = lay_out_and_take_away(tmp_path, name)  # the text's path and bytes, and the function that reads it

    def type_of_result_or_error(octets):
        file.path.write_bytes(octets)
        try:
            return type(file.read(file.path))
        except ObygazeError as error:
            return str(error)

    without_mark = type_of_result_or_error(file.good_bytes)
    with_mark = type_of_result_or_error(BOM_UTF8 + file.good_bytes)

    assert with_mark == without_mark


def test_a_file_of_at_most_as_many_bytes_as_the_limit_is_read(tmp_path):
    """The file has nine bytes, and is read with a limit of nine, and of eight."""
    path = tmp_path / "a"
    nine_bytes = b"one\r\ntwo\n"
    path.write_bytes(nine_bytes)

    assert read_bytes(path, maximum=9) == nine_bytes
    with pytest.raises(InputError, match="a"):
        read_bytes(path, maximum=8)


def test_ends_of_lines_of_windows_become_those_of_python_in_text_but_not_in_bytes(tmp_path):
    """Windows ends a line with two characters, a carriage return and the line feed that Python has alone."""
    path = tmp_path / "a"
    path.write_bytes(b"one\r\ntwo\n")

    assert read_text(path) == "one\ntwo\n"
    assert read_bytes(path) == b"one\r\ntwo\n"


def test_a_folder_and_a_file_that_is_not_there_are_refused_by_name(tmp_path):
    """Python's own errors say which of the two it is; their messages have the name."""
    with pytest.raises(IsADirectoryError, match=tmp_path.name):
        open_regular(tmp_path)

    with pytest.raises(FileNotFoundError, match="nothing"):
        read_bytes(tmp_path / "nothing")


def file_that_grows_with_each_read(path, monkeypatch):
    """Write 8 bytes to a file; whenever somebody reads of it, four more are added."""
    path.write_bytes(b"8 bytes.")

    class GrowingFile(io.FileIO):
        def read(self, size=-1):
            data = super().read(size)
            with path.open("ab") as file:
                file.write(b"more")
            return data

    monkeypatch.setattr(untrusted, "open_regular", lambda *_, **__: GrowingFile(path))


def test_bytes_that_are_added_while_a_file_is_read_count_for_its_limit(tmp_path, monkeypatch):
    """A file has 8 bytes when it is opened, as many as may be read, and grows while it is read."""
    path = tmp_path / "a"
    file_that_grows_with_each_read(path, monkeypatch)

    with pytest.raises(InputError, match="a"):
        read_bytes(path, maximum=8)


@POSIX
def test_a_file_that_is_refused_is_closed(tmp_path):
    """A folder, a file above the limit of one byte and a pipe; /dev/fd lists what this process has open."""
    folder, long_file, pipe = tmp_path, tmp_path / "a", tmp_path / "pipe"
    long_file.write_bytes(b"too long")
    os.mkfifo(pipe)
    open_before = sorted(Path("/dev/fd").iterdir())

    for path in (folder, long_file, pipe):
        with pytest.raises((InputError, OSError)):
            open_regular(path, maximum=1)

    open_after = sorted(Path("/dev/fd").iterdir())
    assert open_after == open_before


@POSIX
def test_a_socket_is_refused_by_its_name(tmp_path, monkeypatch):
    """Some program listens at a name that looks like that of a table; there is nothing to read."""
    monkeypatch.chdir(tmp_path)  # a socket's name must be short, and may be relative
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("films.csv")

        with pytest.raises(InputError, match=r"films\.csv"):
            open_regular(tmp_path / "films.csv", maximum=1)


@contextmanager
def stream_with(content, name, monkeypatch):
    """Let bytes wait in standard input, or in a pipe, none of them read yet; give the name to read."""
    reading_end, writing_end = os.pipe()
    os.write(writing_end, content)
    os.close(writing_end)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    forget_what_was_read = untrusted._read_stream.cache_clear
    forget_what_was_read()
    try:
        yield Path(f"/dev/fd/{reading_end}" if name == "the pipe" else name)
    finally:
        forget_what_was_read()
        os.close(reading_end)


@pytest.mark.parametrize("name", ["-", "/dev/stdin", "the pipe"])
def test_standard_input_and_pipes_are_read_once_and_to_the_limit(monkeypatch, name):
    """A stream can be read only once, so that what was read of it is kept, and given at each further reading.

    Of any stream at most `MAX_BYTES` + 1 bytes are read, here 4 + 1: enough to see that it has too many for
    a caller who allows four, and all that a caller who allows five asks for.
    """
    monkeypatch.setattr(untrusted, "MAX_BYTES", 4)

    with stream_with(b"12345", name, monkeypatch) as stream:
        with pytest.raises(InputError):
            read_bytes(stream, maximum=4)
        assert read_bytes(stream, maximum=5) == b"12345"
        assert read_bytes(stream, maximum=5) == b"12345"


@POSIX
@pytest.mark.parametrize("place", ["link", "folder/file"], ids=["of a file", "of a folder above it"])
def test_a_link_is_followed_but_not_within_a_folder_that_was_sent(tmp_path, place):
    """`within` names such a folder: a stranger's link could lead anywhere on this machine.

    `link` leads to the file, and `folder` to the folder that the file is in.
    """
    (tmp_path / "file").write_bytes(b"a")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "folder").symlink_to(".")
    by_link = tmp_path / place

    assert read_bytes(by_link) == b"a"
    with pytest.raises(LinkError):
        read_bytes(by_link, within=tmp_path)


@POSIX
def test_the_folder_that_was_sent_may_itself_be_named_by_a_link(tmp_path):
    """The user made this link, and no stranger."""
    (tmp_path / "file").write_bytes(b"a")
    link_to_folder = tmp_path / "sent"
    link_to_folder.symlink_to(".")

    assert read_bytes(link_to_folder / "file", within=link_to_folder) == b"a"


FROZEN_STORE = TESTS / "store/frozen/format-1.2-1.0.0"


def content_of_store(path):
    """Read a store: its version, its number of clips, and the bytes of the vectors of each group."""
    store = open_store(path)
    vectors = [store[group].pooled().tobytes() for group in store]
    return store.version, len(store.clips), vectors


@POSIX
@pytest.mark.parametrize("name", ["data/clips.csv", "data/features.zarr/zarr.json", "bag-info.txt", "data"])
def test_a_store_is_read_through_a_link_in_the_place_of_a_file_with_the_listed_digest(tmp_path, name):
    """Git-annex puts links in the place of files. A store, here FROZEN_STORE, lists the digests of its files.

    The file `name`, or the folder of all data, is moved, and a link to it takes its place.
    """
    store = shutil.copytree(FROZEN_STORE, tmp_path / "store")
    content_before = content_of_store(store)

    (store / name).rename(tmp_path / "elsewhere")
    (store / name).symlink_to(tmp_path / "elsewhere")

    assert content_of_store(store) == content_before


@POSIX
@pytest.mark.parametrize("name", ["data/clips.csv", "data/features.zarr/zarr.json", "bag-info.txt", "data"])
def test_a_link_in_a_store_to_a_file_of_another_digest_is_refused(tmp_path, name):
    """A file of a store, FROZEN_STORE, is moved, and a link takes its place.

    The file that the link leads to has one byte more than the one whose digest the store lists.
    """
    store = shutil.copytree(FROZEN_STORE, tmp_path / "store")
    elsewhere = tmp_path / "elsewhere"
    (store / name).rename(elsewhere)
    (store / name).symlink_to(elsewhere)

    file = elsewhere / "clips.csv" if name == "data" else elsewhere
    file.write_bytes(file.read_bytes() + b" ")

    with pytest.raises((ObygazeError, OSError)):
        content_of_store(store)


@pytest.fixture
def zoo_with_a_link(tmp_path):
    """A function of the name of a file: it copies our zoo of models and makes this file a link.

    The link leads to the file itself, outside of the zoo; returns the zoo's folder.
    """

    def with_link(member):
        zoo = shutil.copytree(ROOT / "obygaze_models/zoo", tmp_path / "zoo")
        (zoo / member).rename(tmp_path / member)
        (zoo / member).symlink_to(tmp_path / member)
        return zoo

    return with_link


@POSIX
def test_a_list_of_models_that_is_a_link_is_refused(zoo_with_a_link):
    """The list has the digests of the models, and nothing has the digest of the list."""
    zoo = zoo_with_a_link("zoo.toml")

    with pytest.raises(ObygazeError):
        om.verify_models(zoo)


@POSIX
def test_a_model_may_be_a_link_to_a_file_with_the_listed_digest(zoo_with_a_link):
    """`verify_models` lists each model with what is wrong with it: an empty text where it is as listed."""
    zoo = zoo_with_a_link("words-s-1.0.0.model")

    models_and_problems = om.verify_models(zoo)

    assert models_and_problems
    for model, problem in models_and_problems:
        assert problem == "", model


@POSIX
@pytest.mark.parametrize("name", ["<(cat films.csv)", "/dev/stdin < films.csv", "- < films.csv"])
def test_a_command_reads_a_file_that_the_shell_opened(tmp_path, name):
    """`name` is typed in the place of a manifest's path: the shell gives a pipe, or standard input."""
    text_of_one_clip, _ = TEXTS["films.csv"]
    (tmp_path / "films.csv").write_text(text_of_one_clip)
    words = ("bash", "-c", f"{sys.executable} -m obygaze manifest inspect {name}")

    result = execute(*words, cwd=tmp_path, env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"})

    assert "1 clip" in result.stdout


DEEP_KEY = "a" + ".a" * 20_000
"""A key of 20 000 tables, each in the one before: the parser's time grows with the square of their number."""
LONG_NUMBER = "1" * 1_000_000
"""A number whose conversion takes time that grows with the square of its digits."""
END_OF_SIX_QUOTES = '\\""""""'
"""An escaped quote, then five: two more of the text, and its end. Naive readers take the rest as text."""
END_OF_APOSTROPHES = "\\'''"
"""The end of a literal text, in which a backslash escapes nothing."""

COSTLY_TOML = {
    "a dotted key": f"{DEEP_KEY} = 1",
    "a dotted header": "[" + ".".join(["abc"] * 3_000) + "]",
    "a dotted key of quoted parts": " . ".join(['"a"'] * 300) + " = 1",
    "a dotted key in an inline table": "b = {" + ".".join(["'a.b'"] * 200) + " = 1}",
    "a dotted key behind six quotes": f'x = """{END_OF_SIX_QUOTES}\n{DEEP_KEY}=1\n# """\n',
    "a dotted key behind apostrophes": f"x = '''{END_OF_APOSTROPHES}\n{DEEP_KEY}=1\n# '''\n",
    "many tables": "".join(f"[{number:x}]\n" for number in range(20_000)),
    "many empty tables": "".join(f"{number:x}={{}}\n" for number in range(20_000)),
    "many dotted tables": "".join(f"[{number:x}{'.a' * 150}]\n" for number in range(200)),
    "lists that are not closed": "a = " + "[" * 100_000,
    "lists in lists": "a = " + "[" * 1900,
    "a long hexadecimal number": "a = 0x" + "f" * 1_000_000,
    "a long number with underscores": "a = " + "1_" * 500_000 + "1",
    "a long fraction": f"a = 1.{LONG_NUMBER}",
    "a long number behind six quotes": f'a = """{END_OF_SIX_QUOTES}\nb = {LONG_NUMBER}\n# """',
    "a file of more than 4 MB": "# " + "x" * (4 << 20),
}
"""Texts on which a parser of TOML takes much more time or memory than they are long."""


@pytest.mark.parametrize("name", COSTLY_TOML)
def test_toml_that_takes_much_time_or_memory_for_its_size_is_refused(name):
    """COSTLY_TOML has such texts, as a key of 20,000 parts, a.a.a..., or a number of a million digits.

    The message says what there is too much of: points in keys, depth, digits, or megabytes.
    """
    costly_text = COSTLY_TOML[name]

    with pytest.raises(ValueError, match=r"points|deeply|digits|MB"):
        parse_toml(costly_text)


BARE = st.text("ab_-1", min_size=1, max_size=3)
STRINGS = st.sampled_from(['""', "''", '"."', "'.'", '"""\\""""""', "'''\\'''", '"\\""', '"a.b"', '"""\n"""'])
KEYS = st.lists(st.one_of(BARE, STRINGS), min_size=1, max_size=4).map(".".join)
VALUES = st.recursive(
    st.one_of(STRINGS, st.sampled_from(["1", "1.5", "true", "1979-05-27", "[]", "{}"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda values: f"[{', '.join(values)}]"),
        st.tuples(KEYS, inner).map(lambda pair: f"{{{pair[0]} = {pair[1]}}}"),
    ),
    max_leaves=8,
)
STATEMENTS = st.one_of(
    st.tuples(KEYS, VALUES).map(" = ".join),
    KEYS.map("[{}]".format),
    KEYS.map("[[{}]]".format),
    STRINGS.map("# {}".format),
)


def peak_bytes_of_parsing(text):
    """Parse a TOML text, and return how many bytes Python took for it at the most.

    A text that is refused raises a ValueError.
    """
    tracemalloc.start()
    try:
        parse_toml(text)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return peak_bytes


@pytest.mark.long
@settings(max_examples=60)
@given(st.lists(STATEMENTS, min_size=1, max_size=6), st.sampled_from([1, 40, 400, 4000]))
def test_toml_takes_memory_in_proportion_to_its_size(statements, times):
    """Parsing takes at most 50 bytes of memory for each byte of a text, and a megabyte.

    A text has one to six statements of TOML, drawn at random, again and again: once, or up to 4,000 times.
    TOML refuses a key that is there twice, so each repetition is in a table of its own, [t0], [t1] and so on.
    Texts that are refused all the same are left out.
    """
    statements_once = "\n".join(statements)
    text = "".join(f"[t{number}]\n{statements_once}\n" for number in range(times))

    with suppress(ValueError):
        assert peak_bytes_of_parsing(text) < 50 * len(text) + 1_000_000


JSON_PARTS = ["[]", "{}", '{"":{}}', '[{"a":1}]', '""', "1.5", "null", '{"a":[]}', '"\\ud83d"']


@given(st.lists(st.sampled_from(JSON_PARTS), min_size=1, max_size=6))
def test_json_takes_memory_in_proportion_to_its_size(parts):
    """Parsing takes at most 50 bytes for each byte of a text.

    The text is a list of small lists, dictionaries and numbers, `parts`, 2,000 times over.
    """
    items = ",".join(parts * 2000)
    text = f"[{items}]"

    tracemalloc.start()
    parse_json(text)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak_bytes < 50 * len(text)


def test_toml_may_be_as_long_as_its_limit_of_4_mb():
    """Behind one key the text has a long comment, which fills it up to the limit."""
    four_mb = 4 * 1024 * 1024
    longest_text = "a = 1\n#".ljust(four_mb, "x")

    assert parse_toml(longest_text) == {"a": 1}
    with pytest.raises(ValueError, match="4 MB"):
        parse_toml(longest_text + "x")


@pytest.mark.parametrize(("text", "where"), [("a = 1\na = 2", "its end"), ("a = 1\na = 2\nb = 3", "line 2")])
def test_a_message_says_where_toml_is_damaged(text, where):
    """The key a is there twice, which TOML forbids: in the last line, or in the second of three."""
    with pytest.raises(ValueError, match=f"damaged at {where}"):
        parse_toml(text)


def test_dots_in_texts_numbers_and_comments_are_no_keys():
    """Keys of many parts, a.b.c, are refused as costly; here dots are in all that may look like one."""
    dots = "." * 30 + "a.b" * 40
    text = f'''
# {dots}
a = "{dots}"
b = """
{dots}"""
c = [{"1.5, " * 40}]
"{dots}" = 1
d.e.f = 2
'''

    document = parse_toml(text)

    assert document["a"] == dots
    assert document["b"] == dots
    assert document["c"] == [1.5] * 40
    assert document[dots] == 1
    assert document["d"] == {"e": {"f": 2}}


def test_json_of_lists_in_lists_in_lists_is_refused():
    """A parser that calls itself for each list would end the process."""
    with pytest.raises(ValueError, match="deeply"):
        parse_json("[" * 100_000)


@pytest.mark.skipif(sys.platform != "linux", reason="a file whose first bytes cannot be read")
def test_an_error_of_the_disk_names_the_file():
    """Linux gives an input/output error for the first bytes of this file, the memory of the process."""
    with pytest.raises(OSError, match="/proc/self/mem"):
        read_bytes(Path("/proc/self/mem"))


def test_a_limit_of_a_megabyte_is_called_1_mb(tmp_path):
    """The file has one byte more than may be read; the message names the limit."""
    one_mb = 1024 * 1024
    path = tmp_path / "f"
    path.write_bytes(bytes(one_mb + 1))

    with pytest.raises(InputError, match=r"\b1 MB"):
        read_bytes(path, one_mb)


READING = {
    "read": lambda file: file.read(1),
    "readall": lambda file: file.readall(),
    "readinto": lambda file: file.readinto(bytearray(1)),
    "close": lambda file: file.close(),
}


@pytest.mark.parametrize("call", READING)
def test_an_error_of_reading_or_closing_names_the_file(tmp_path, call):
    """The system names the file in an error of opening it, and in none of reading or closing it.

    Without the name, a command could only say "input/output: Input/output error".
    """
    path = tmp_path / "films.csv"
    path.write_bytes(b"a")
    file = open_regular(path)
    os.close(file.fileno())  # so that the system refuses whatever is asked of the file

    with pytest.raises(OSError) as refused:  # noqa: PT011 - not the message is looked at
        READING[call](file)
    with suppress(OSError):
        file.close()

    assert refused.value.filename == str(path)
