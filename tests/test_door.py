"""What strangers may have made is read by one door: nothing is waited for, and nothing takes all memory."""

import io
import os
import shutil
import socket
import sys
import tracemalloc
from codecs import BOM_UTF8
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import obygaze_film
import obygaze_models as om
from obygaze_features import door
from obygaze_features.door import (
    MOST_TOML,
    open_regular,
    parse_json,
    parse_toml,
    read_bytes,
    read_text,
)
from obygaze_features.errors import InputError, LinkError, ObygazeError
from obygaze_features.exchange.import_tables import table_items
from obygaze_features.manifest import import_spans, load_codebook, read_manifest, read_subtitles
from obygaze_features.store import open_store
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
    "table.csv": ("clip_id,f0,f1\na,0.5,1\n", lambda path: table_items(path, None).__enter__()),
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


def sparse(path, _):
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
    "eight sparse gigabytes": sparse,
}
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


def prepared(folder, name):
    """Lay the good file out; return its path, what reads it, and its bytes, which are taken away."""
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
    return path, reader, good


NAMES = [*TEXTS, *FOLDERS]


@pytest.mark.long
@POSIX
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("hostile", ENDLESS)
def test_a_pipe_a_device_and_a_sparse_file_are_refused_at_once(tmp_path, name, hostile):
    path, reader, good = prepared(tmp_path, name)
    ENDLESS[hostile](path, good)
    with pytest.raises((ObygazeError, OSError)) as error:
        reader(path)
    assert path.name in str(error.value)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("hostile", SMALL)
def test_odd_content_is_read_or_refused_in_one_line(tmp_path, name, hostile):
    path, reader, good = prepared(tmp_path, name)
    SMALL[hostile](path, good)
    try:
        reader(path)
    except ObygazeError as error:
        assert "\n" not in str(error)  # noqa: PT017 - it may be read as well


@pytest.mark.parametrize("name", TEXTS)
def test_a_byte_order_mark_changes_nothing(tmp_path, name):
    path, reader, good = prepared(tmp_path, name)

    def outcome(data):
        path.write_bytes(data)
        try:
            return type(reader(path))
        except ObygazeError as error:
            return str(error)

    assert outcome(BOM_UTF8 + good) == outcome(good)


def test_a_file_of_at_most_as_many_bytes_as_the_limit_is_read(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"one\r\ntwo\n")

    assert read_bytes(path, 9) == b"one\r\ntwo\n"
    assert read_text(path) == "one\ntwo\n"
    with pytest.raises(InputError, match="a"):
        read_bytes(path, 8)


def test_a_folder_and_a_file_that_is_not_there_are_refused_by_name(tmp_path):
    with pytest.raises(IsADirectoryError, match=tmp_path.name):
        open_regular(tmp_path)
    with pytest.raises(FileNotFoundError, match="nothing"):
        read_bytes(tmp_path / "nothing")


def test_bytes_that_are_added_while_a_file_is_read_count_for_its_limit(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_bytes(b"8 bytes.")

    class Growing(io.FileIO):
        def read(self, size=-1):
            data = super().read(size)
            with path.open("ab") as file:
                file.write(b"more")
            return data

    monkeypatch.setattr(door, "open_regular", lambda *_, **__: Growing(path))
    with pytest.raises(InputError, match="a"):
        read_bytes(path, 8)


@POSIX
def test_a_file_that_is_refused_is_closed(tmp_path):
    (tmp_path / "a").write_bytes(b"too long")
    os.mkfifo(tmp_path / "pipe")
    before = sorted(Path("/dev/fd").iterdir())
    for path in (tmp_path, tmp_path / "a", tmp_path / "pipe"):
        with pytest.raises((InputError, OSError)):
            open_regular(path, 1)
    assert sorted(Path("/dev/fd").iterdir()) == before


@POSIX
def test_a_socket_is_refused_by_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("films.csv")
        with pytest.raises(InputError, match=r"films\.csv"):
            open_regular(tmp_path / "films.csv", 1)


@pytest.mark.parametrize("name", ["-", "/dev/stdin", "the pipe"])
def test_standard_input_and_pipes_are_read_once_and_to_the_limit(monkeypatch, name):
    reading, writing = os.pipe()
    os.write(writing, b"12345")
    os.close(writing)
    path = Path(f"/dev/fd/{reading}" if name == "the pipe" else name)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"12345")))
    monkeypatch.setattr(door, "MOST_BYTES", 4)
    door._read_stream.cache_clear()
    try:
        with pytest.raises(InputError):
            read_bytes(path, 4)
        assert read_bytes(path, 5) == read_bytes(path, 5) == b"12345"
    finally:
        door._read_stream.cache_clear()
        os.close(reading)


@POSIX
@pytest.mark.parametrize("place", ["link", "folder/file"], ids=["of a file", "of a folder above it"])
def test_a_link_is_followed_but_not_within_a_folder_that_was_sent(tmp_path, place):
    """`within` names such a folder: a stranger's link could lead anywhere on this machine."""
    (tmp_path / "file").write_bytes(b"a")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "folder").symlink_to(".")

    assert read_bytes(tmp_path / place) == b"a"
    with pytest.raises(LinkError):
        read_bytes(tmp_path / place, within=tmp_path)


@POSIX
def test_the_folder_that_was_sent_may_itself_be_named_by_a_link(tmp_path):
    (tmp_path / "file").write_bytes(b"a")
    (tmp_path / "sent").symlink_to(".")
    assert read_bytes(tmp_path / "sent" / "file", within=tmp_path / "sent") == b"a"


STORE = TESTS / "store/frozen/format-1.2-1.0.0"


@POSIX
@pytest.mark.parametrize("name", ["data/clips.csv", "data/features.zarr/zarr.json", "bag-info.txt", "data"])
def test_a_link_in_a_store_is_followed_to_a_file_with_the_listed_digest_alone(tmp_path, name):
    """git-annex puts links in the place of files."""

    def read():
        store = open_store(tmp_path / "store")
        return store.version, len(store.clips), *(store[group].pooled().tobytes() for group in store)

    shutil.copytree(STORE, tmp_path / "store")
    before = read()
    path, elsewhere = tmp_path / "store" / name, tmp_path / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    assert read() == before

    file = elsewhere if elsewhere.is_file() else elsewhere / "clips.csv"
    file.write_bytes(file.read_bytes() + b" ")
    with pytest.raises((ObygazeError, OSError)):
        read()


@pytest.fixture
def zoo_with_a_link(tmp_path):
    """Give a function that puts a link in the place of a file of the zoo, and returns the zoo's folder."""

    def with_link(member):
        zoo = shutil.copytree(ROOT / "obygaze_models/zoo", tmp_path / "zoo")
        (zoo / member).rename(tmp_path / member)
        (zoo / member).symlink_to(tmp_path / member)
        return zoo

    return with_link


@POSIX
def test_a_list_of_models_that_is_a_link_is_refused(zoo_with_a_link):
    with pytest.raises(ObygazeError):
        om.verify_models(zoo_with_a_link("zoo.toml"))


@POSIX
def test_a_model_may_be_a_link_to_a_file_with_the_listed_digest(zoo_with_a_link):
    problems = om.verify_models(zoo_with_a_link("words-s-1.0.0.model"))
    assert {problem for _, problem in problems} == {""}


@POSIX
@pytest.mark.parametrize("name", ["<(cat films.csv)", "/dev/stdin < films.csv", "- < films.csv"])
def test_a_command_reads_a_file_that_the_shell_opened(tmp_path, name):
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
    """The message says what there is too much of: points in keys, depth, digits, or megabytes."""
    with pytest.raises(ValueError, match=r"points|deeply|digits|MB"):
        parse_toml(COSTLY_TOML[name])


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


@pytest.mark.long
@settings(max_examples=60)
@given(st.lists(STATEMENTS, min_size=1, max_size=6), st.sampled_from([1, 40, 400, 4000]))
def test_toml_takes_memory_in_proportion_to_its_size(statements, times):
    # Each time under another table, so that what was right once is right again.
    text = "".join(f"[t{n}]\n" + "\n".join(statements) + "\n" for n in range(times))
    with suppress(ValueError):
        tracemalloc.start()
        try:
            parse_toml(text)
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert peak < 50 * len(text) + 1_000_000


JSON_PARTS = ["[]", "{}", '{"":{}}', '[{"a":1}]', '""', "1.5", "null", '{"a":[]}', '"\\ud83d"']


@given(st.lists(st.sampled_from(JSON_PARTS), min_size=1, max_size=6))
def test_json_takes_memory_in_proportion_to_its_size(parts):
    text = f"[{','.join(parts * 2000)}]"
    tracemalloc.start()
    parse_json(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50 * len(text)


def test_toml_may_be_as_long_as_its_limit():
    text = "a = 1\n#".ljust(MOST_TOML, "x")
    assert parse_toml(text) == {"a": 1}
    with pytest.raises(ValueError, match="4 MB"):
        parse_toml(f"{text}x")


@pytest.mark.parametrize(("text", "where"), [("a = 1\na = 2", "its end"), ("a = 1\na = 2\nb = 3", "line 2")])
def test_a_message_says_where_toml_is_damaged(text, where):
    with pytest.raises(ValueError, match=f"damaged at {where}"):
        parse_toml(text)


def test_dots_in_texts_numbers_and_comments_are_no_keys():
    dots = "." * 30 + "a.b" * 40
    text = f'# {dots}\na = "{dots}"\nb = """\n{dots}"""\nc = [{"1.5, " * 40}]\n"{dots}" = 1\nd.e.f = 2\n'
    result = parse_toml(text)
    assert (result["a"], result["b"], result[dots], result["d"]) == (dots, dots, 1, {"e": {"f": 2}})
    assert result["c"] == [1.5] * 40
    with pytest.raises(ValueError, match="deeply"):
        parse_json("[" * 100_000)


@pytest.mark.skipif(sys.platform != "linux", reason="a file whose first bytes cannot be read")
def test_an_error_of_the_disk_names_the_file():
    with pytest.raises(OSError, match="/proc/self/mem"):
        read_bytes(Path("/proc/self/mem"))


def test_a_limit_of_a_megabyte_is_called_one(tmp_path):
    (tmp_path / "f").write_bytes(bytes((1 << 20) + 1))
    with pytest.raises(InputError, match=r"\b1 MB"):
        read_bytes(tmp_path / "f", 1 << 20)
