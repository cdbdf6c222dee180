"""Files of strangers are read in a child with limits: what takes more is one line, and harms nothing else."""

import ctypes
import json
import math
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import pytest

from obygaze_features import limits, sandbox
from obygaze_features.errors import InputError, ManifestError
from obygaze_features.limits import Limits, limits_of
from obygaze_features.manifest import (
    Account,
    UnreadColumnsError,
    builtin_codebook,
    guess_codebook,
    import_spans,
    load_codebook,
    read_manifest,
    read_subtitles,
)
from obygaze_features.manifest.importers import person_tables
from obygaze_features.manifest.importers.imported import ClipIds
from obygaze_features.manifest.importers.table_rows import clip_rows
from obygaze_features.manifest.spans import read_in_sandbox, span_file
from obygaze_features.manifest.spans.account import MAX_LISTED, MAX_REASONS
from obygaze_features.manifest.spans.headings import Headings
from obygaze_features.manifest.spans.label_words import LabelWords
from obygaze_features.manifest.spans.read_in_sandbox import FileContent
from obygaze_features.manifest.spans.record import RawSpan
from obygaze_features.manifest.spans.span_file import Reading, SpanFile
from obygaze_features.manifest.text_tables import Row, Table
from obygaze_features.sandbox import Child, reader_process
from tests.cpu_time import within_cpu_s
from tests.manifest.spans.files import alignable_annotation, eaf, ref_annotation, sheet, tier
from tests.process import python

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the parent watches there")

ROOT = Path(__file__).parents[3]
SRT = "1\n00:00:01,000 --> 00:00:02,000\nHello\n"


FORKS = "OBYGAZE_TESTS_FORK"
"""Variable of the environment: set where the children are forks, in a process without other threads."""
KINDS = ["a fork"] if FORKS in os.environ else ["a new Python"]


@pytest.fixture(autouse=True)
def _children(monkeypatch):
    """Read in children, which other tests do without."""
    monkeypatch.setitem(sandbox._state, "is child", False)


@pytest.fixture(params=KINDS)
def kind(request):
    """Return how children are started; a process with other threads cannot be forked."""
    if request.param == "a fork":
        assert sandbox._may_fork()
    return request.param


@pytest.fixture
def child(kind, monkeypatch):
    """A child of each kind."""
    monkeypatch.setattr(sandbox, "_may_fork", lambda: kind == "a fork")
    with reader_process() as each:
        yield each


@pytest.fixture
def limits_of_1_s_and_64_mb(monkeypatch):
    """Give each child a second, and 64 MB above what it has when it is idle."""
    megabytes_64 = 64 << 20
    monkeypatch.setattr(sandbox, "limits_of", lambda _: Limits(cpu_s=1, memory=megabytes_64))
    monkeypatch.setattr(sandbox, "WALL_FACTOR", 100.0)  # a busy machine starts a new Python late


def limit_what_an_import_may_hold(monkeypatch, memory: int):
    """Let an import hold this many bytes of memory for what its files say."""
    monkeypatch.setattr(read_in_sandbox, "limits_of", lambda size: limits_of(size)._replace(memory=memory))


def limit_a_childs_time(monkeypatch, cpu_s: int):
    """Let a child read a file for this many seconds of the processor: longer, and it is stopped, an error."""
    monkeypatch.setattr(sandbox, "limits_of", lambda size: limits_of(size)._replace(cpu_s=cpu_s))


def compute_without_end() -> Iterator[bytes]:
    """Take all the time that there is."""
    while True:
        pass
    yield b""


def take_a_gigabyte() -> Iterator[bytes]:
    """Take a gigabyte at once."""
    yield bytes([len(bytearray(1 << 30)) % 2])


def take_a_gigabyte_in_steps() -> Iterator[bytes]:
    """Take a gigabyte, and use it."""
    parts = []
    for _ in range(64):
        parts.append(b"x" * (1 << 24))
        time.sleep(0.05)
    yield bytes([len(parts)])


def crash() -> Iterator[bytes]:
    """Die as a library does that reads a damaged file."""
    os.kill(os.getpid(), signal.SIGSEGV)
    yield b""


def crash_without_memory() -> Iterator[bytes]:
    """Die as a library does that takes memory until there is no more, and does not look."""
    parts = [ctypes.create_string_buffer(b"x" * (1 << 20)) for _ in range(50)]
    time.sleep(0.5)  # a worker is looked at five times a second
    os.kill(os.getpid(), signal.SIGSEGV)
    yield bytes([len(parts)])


def answer_without_end() -> Iterator[bytes]:
    """Answer megabyte after megabyte."""
    while True:
        yield b"x" * (1 << 20)


def make_a_socket() -> Iterator[bytes]:
    """Do what needs a network."""
    socket.socket().close()
    yield b""


def refuse_line_3() -> Iterator[bytes]:
    """Refuse a file as a reader does, after a part of it."""
    yield b"a part"
    raise ManifestError("a.csv: line 3: wrong", "level")


def open_a_file_that_is_not_there() -> Iterator[bytes]:
    """Fail as a reader does whose file is gone: with an error of the system."""
    yield Path("nowhere").read_bytes()


def raise_a_key_error() -> Iterator[bytes]:
    """Fail as a bug does, after a part of a file."""
    yield b"a part"
    raise KeyError("bug")


def process_id() -> Iterator[bytes]:
    """Return which process this is."""
    yield str(os.getpid()).encode()


def answer_of(child: Child, work, path: Path) -> bytes:
    """Have a child do some work on a file; return all that it answers."""
    return b"".join(child.call(work, path=path))


@pytest.mark.long
@pytest.mark.parametrize(
    ("work", "message"),
    [
        (compute_without_end, "1 s"),
        (take_a_gigabyte, "64 MB"),
        (crash, "crashed"),
        (crash_without_memory, "64 MB"),
        (answer_without_end, "64 MB"),
    ],
)
@pytest.mark.usefixtures("limits_of_1_s_and_64_mb")
def test_a_child_that_exceeds_its_limits_or_crashes_is_an_error_of_one_line_about_the_file(
    child, work, message, tmp_path
):
    """A file is read by a child process, which may take a second and 64 MB. Here it takes more, or crashes.

    The error names the file and the limit, and the next file is read by another child.
    """
    path = tmp_path / "a.eaf"

    with pytest.raises(InputError, match=message) as error:
        answer_of(child, work, path)

    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)
    answer_of_next_child = answer_of(child, process_id, path)
    assert answer_of_next_child != b""


@pytest.mark.long
@pytest.mark.nightly
def test_all_tests_of_a_child_hold_for_forks_of_a_process_without_other_threads():
    """A child process is a new Python, or a fork of this one, which is possible if this has no other threads.

    Here the ten tests of this file that use the fixture `child` or `kind` start a new Python. They run once
    more, with forks, in a pytest of their own: the variable of the environment `FORKS` gives these fixtures
    the parameter "a fork", by whose id the tests are selected.
    """
    has_parameter_a_fork = "fork and not forked and not forks"  # other tests have these words in their names
    options = ["-q", "-p", "no:xdist", "-p", "no:cacheprovider", "-W", "error", "-k", has_parameter_a_fork]
    # What this pytest has in PYTEST_... is not for that one.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    process = subprocess.run(
        [sys.executable, "-m", "pytest", __file__, *options],
        env=environment | {FORKS: "1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stdout[-3000:]
    n_cases_of_work_that_exceeds_limits = 5
    n_tests_with_a_child = 5
    n_passed = int(re.search(r"(\d+) passed", process.stdout)[1])
    assert n_passed == n_cases_of_work_that_exceeds_limits + n_tests_with_a_child


WATCHED = """
from pathlib import Path
from obygaze_features import limits, sandbox
from obygaze_features.errors import InputError
from tests.manifest.spans import test_limits as works

assert not limits.SYSTEM_KEEPS_LIMITS
sandbox.limits_of = lambda _: limits.Limits(1, 1 << 26)
with sandbox.reader_process() as child:
    for work in (works.compute_without_end, works.take_a_gigabyte_in_steps):
        try:
            works.answer_of(child, work, Path("a.eaf"))
        except InputError as error:
            print(error)
    print(works.answer_of(child, works.process_id, Path()).isdigit())
"""
"""A program that has a child compute without end, then take a gigabyte, and then say which process it is.

The child has a second and 64 MB, which the system does not enforce. The program prints three lines.
"""


@pytest.mark.long
@pytest.mark.nightly
@pytest.mark.parametrize("system", ["windows", "macos"])
def test_the_parent_watches_where_the_system_keeps_no_limits(system):
    """Windows and macOS, which are simulated here, don't stop a process that takes too much time or memory.

    The program `WATCHED` gives a child three tasks on a file a.eaf: to compute without end, to take a
    gigabyte, and to say which process it is. A child may have a second and 64 MB. So the parent must stop it
    twice, and start a new one each time; the program prints a line on each task.
    """
    folders_of_modules = os.pathsep.join([str(ROOT / "tests" / "simulated"), str(ROOT)])
    process = subprocess.run(
        [sys.executable, "-c", WATCHED],
        env=os.environ | {"SIMULATED": system, "PYTHONPATH": folders_of_modules},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr[-3000:]
    error_of_time, error_of_memory, has_a_process_id = process.stdout.splitlines()
    assert error_of_time.startswith("a.eaf: ")
    assert "more than 1 s" in error_of_time
    assert error_of_memory.startswith("a.eaf: ")
    assert "more than 64 MB" in error_of_memory
    assert has_a_process_id == "True"


def test_a_child_has_no_network(child):
    """A child is a process that reads files of strangers for us. It may not make a socket to a network."""
    with pytest.raises(PermissionError):
        answer_of(child, make_a_socket, Path())


def test_a_child_is_kept_for_the_files_of_an_import(child):
    """A child is a process that reads files for us. Asked twice which process it is, it says the same.

    And it is not this one.
    """
    first = answer_of(child, process_id, Path())
    second = answer_of(child, process_id, Path())

    assert first == second
    assert first != str(os.getpid()).encode()


def test_an_error_of_a_reader_in_a_child_is_raised_in_the_process_that_asked(child):
    """A child is a process that reads files for us, and what its work raises is raised in this process.

    Errors for users keep their facts, here the column, and an error of the system stays one. An error of a
    bug, here a KeyError, becomes a RuntimeError.
    """
    with pytest.raises(ManifestError, match="line 3") as error:
        answer_of(child, refuse_line_3, Path())
    assert error.value.column == "level"

    with pytest.raises(FileNotFoundError, match="nowhere"):
        answer_of(child, open_a_file_that_is_not_there, Path())

    with pytest.raises(RuntimeError, match="KeyError"):
        answer_of(child, raise_a_key_error, Path())


def make_this_process_a_reading_child(monkeypatch):
    """Tell this process that it is the child which reads files for another; it fails if it asks a child."""

    def ask_another(*_):
        pytest.fail("a child asked another")

    monkeypatch.setitem(sandbox._state, "is child", True)
    monkeypatch.setattr(sandbox, "_ask_worker", ask_another)


def test_a_child_process_starts_no_child_of_its_own_to_read_a_file(monkeypatch):
    """Files are read in a child process with limits. Code that runs in one may ask for a reader again.

    Then the reader is that process itself. Here the process of this test is such a child: the reader that it
    gets, asked which process it is, answers with the id of this one.
    """
    make_this_process_a_reading_child(monkeypatch)

    with reader_process() as reader:
        assert isinstance(reader, Child)
        process_that_reads = answer_of(reader, process_id, Path())

    assert process_that_reads == str(os.getpid()).encode()


def test_limits_grow_with_the_file():
    """Any file may take 60 s and 2^28 bytes (256 MB), 20 s more per 10 MB, and 30 bytes more per byte."""
    twenty_megabytes = 20_000_000

    of_empty_file = limits_of(size=0)
    of_large_file = limits_of(twenty_megabytes)

    assert of_empty_file == Limits(cpu_s=60, memory=2**28)
    assert of_large_file == Limits(cpu_s=60 + 2 * 20, memory=2**28 + 30 * twenty_megabytes)


@contextmanager
def waiting_threads(n_threads: int) -> Iterator[None]:
    """Let so many threads of this process wait meanwhile."""
    stop = threading.Event()
    for _ in range(n_threads):
        threading.Thread(target=stop.wait, daemon=True).start()
    try:
        yield
    finally:
        stop.set()


@pytest.mark.parametrize("n_threads", [0, 1], ids=["may be forked", "another thread waits"])
def test_a_file_reads_the_same_whether_this_process_may_be_forked(tmp_path, n_threads):
    """A file of subtitles is read by a child process, which is a fork of this one, or a new Python.

    It is a new Python if this process has another thread, beside which Python does not fork safely.
    """
    path = tmp_path / "a.srt"
    path.write_text("1\n00:00:01,000 --> 00:00:02,000\nHello\n")
    account = Account(path)

    with waiting_threads(n_threads):
        subtitles = read_subtitles(path, account=account)

    assert [subtitle.text for subtitle in subtitles] == ["Hello"]
    assert account.kind == "srt"
    assert account.seen == 1
    assert account.used == 1


def let_reading_in_this_process_fail(monkeypatch):
    """Let this process fail if it reads a workbook, or proposes what its columns are, itself."""
    monkeypatch.setattr(sandbox, "_may_fork", lambda: False)  # a fork would have what is patched here
    monkeypatch.setattr(person_tables, "propose", lambda *_: pytest.fail("proposed here"))
    monkeypatch.setattr(span_file, "read_workbook", lambda *_: pytest.fail("read here"))


def test_what_is_proposed_of_a_table_is_found_in_the_child(tmp_path, monkeypatch):
    """A table of unknown headings is refused with options to type. Here nothing of the file is opened."""
    path = tmp_path / "t.xlsx"
    path.write_bytes(sheet([["film", "from", "to", "rating"], ["m", 1, 2, "S"], ["m", 3, 4, "EN"]]))
    let_reading_in_this_process_fail(monkeypatch)

    with pytest.raises(UnreadColumnsError, match="level=rating"):
        import_spans([path], tmp_path)


@pytest.mark.long
def test_the_time_to_guess_a_codebook_grows_no_faster_than_its_number_of_words(tmp_path, monkeypatch):
    """Each of 20,000 rows has a concept of its own. The child process that reads the table may take 15 s.

    That is enough if time grows with the number of words, but not if each pair of words is compared.
    """
    limit_a_childs_time(monkeypatch, cpu_s=15)
    path = tmp_path / "t.csv"
    path.write_text(table_of_numbered_rows("film,level,concepts", 20_000, "a,S,{0} words {0}"))

    assert len(guess_codebook(path).concepts) == 20_000


@pytest.mark.long
@pytest.mark.nightly
def test_the_time_to_read_a_track_of_cvat_grows_no_faster_than_its_number_of_values(tmp_path, monkeypatch):
    """A track of CVAT follows a thing through a film. Each of its 25,000 frames has a pose of its own here.

    The child process that reads the file is stopped after 5 s, with an error. That is enough if time grows
    with the number of values, but not if it grows with the number of pairs of values.
    """
    limit_a_childs_time(monkeypatch, cpu_s=5)
    boxes = ""
    for frame in range(25_000):
        value = f'<attribute name="pose">pose {frame}</attribute>'
        boxes += f'<box frame="{frame}" outside="0">{value}</box>'
    path = tmp_path / "a.xml"
    path.write_text(f'<annotations><track id="1" label="S">{boxes}</track></annotations>')

    (account,) = import_spans([path], tmp_path, rate=Fraction(25)).accounts

    assert account.seen == 1 + 25_000  # the track, and each value, which lasts until the next one


HALF_A_LETTER = "\ud83d"
"""The first of the two numbers by which UTF-16 writes a rare sign; alone it can't be written as UTF-8."""


def leave_out_20_001_records(file: SpanFile) -> FileContent[RawSpan]:
    """Read no span of a file, as a reader in a child does: one record has no end, and 20,000 have no text.

    The place of the first has half a letter, as damaged files may, which can't be sent as UTF-8.
    """
    file.account.leave_out(f"line {HALF_A_LETTER}", "no end")
    for number in range(20_000):
        file.account.leave_out(f"line {number}", "no text")
    return FileContent(file)


def test_a_child_sends_the_places_and_reasons_of_records_that_it_left_out(child, tmp_path):
    """A child process reads a file, and leaves out a record without an end and 20,000 without a text.

    The account that it sends lists the first 10,000 with their places, even one with half a letter, and
    counts the rest by reason.
    """
    assert MAX_LISTED == 10_000
    path = tmp_path / "a.txt"
    path.write_text("a")

    content = read_in_sandbox.read_in_sandbox(child, path, Reading(), leave_out_20_001_records)

    account = content.file.account
    assert account.left_out[:2] == [(f"line {HALF_A_LETTER}", "no end"), ("line 0", "no text")]
    assert len(account.left_out) == 10_000
    assert account.unlisted == {"no text": 20_001 - 10_000}
    assert account.n_left_out == 20_001


def test_reasons_that_are_all_different_are_counted_together(tmp_path):
    """30,000 records are left out, each for a reason of its own. An account's line shows 4 of them.

    In memory, the account keeps a few reasons, and one more for all others.
    """
    account = Account(tmp_path / "a.srt", "srt", seen=30_001, used=1)

    for number in range(30_000):
        account.leave_out(f"line {number}", f"the same as line {number} of b.srt")

    assert len(account.unlisted) <= MAX_REASONS + 1
    assert account.n_left_out == 30_000
    assert "1 of 30,001 spans read" in account.line()
    assert "29,996 more left out" in account.line()


PEAK = """
import json, re, sys
from pathlib import Path
from obygaze_features.errors import ObygazeError
from obygaze_features.manifest import import_spans

def peak_mb():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) >> 10

small, large = map(Path, sys.argv[1:])
import_spans([small], small.parent)
idle = peak_mb()
seen = used = left_out = 0
refusal = ""
try:
    (account,) = import_spans([large], large.parent, annotator="a").accounts
    seen, used, left_out = account.seen, account.used, account.n_left_out
except ObygazeError as error:
    refusal = str(error)
print(json.dumps([peak_mb() - idle, refusal, seen, used, left_out]))
"""


class MeasuredImport(NamedTuple):
    """The peak memory of a process that imports a file, above that of importing a small one, and the outcome.

    Of a file that is refused, `refusal` is the message and the counts of spans are 0.
    """

    peak_mb: int
    refusal: str
    seen: int
    used: int
    left_out: int


def measured_import(folder: Path, path: Path) -> MeasuredImport:
    """Import a file in a new Python, whose child reads it, and measure the memory of that Python alone."""
    (folder / "small.srt").write_text(SRT)
    words = [sys.executable, "-c", PEAK, str(folder / "small.srt"), str(path)]
    process = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    return MeasuredImport(*json.loads(process.stdout))


GOOD_RTTM = "SPEAKER f 1 1 2 <NA> <NA> A <NA> <NA>\n"


def label_studio_of_empty_regions(n: int) -> str:
    """Write an export of Label Studio with regions that say nothing."""
    regions = ",".join(["{}"] * n)
    annotations = f'[{{"id": 1, "result": [{regions}]}}]'
    return f'[{{"id": 1, "data": {{"video": "a.mp4"}}, "annotations": {annotations}}}]'


N_GOOD_SPANS = {"a.rttm": 1}
"""How many spans the files of `NO_SPANS` have beside records that are none."""

NO_SPANS = {
    "speech without length": ("a.rttm", lambda n: GOOD_RTTM + "SPEAKER f 1 1 0 x x x <NA> <NA>\n" * n),
    "regions that are empty objects": ("a.json", label_studio_of_empty_regions),
    "segments that are empty objects": ("a.json", lambda n: f'{{"segments": [{",".join(["{}"] * n)}]}}'),
}
"""Files with n records that are no spans: the name, and what writes the text."""


@pytest.mark.long
@pytest.mark.nightly
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read as Linux says it")
@pytest.mark.parametrize("case", NO_SPANS)
def test_records_that_are_no_spans_are_counted_and_take_no_memory_here(tmp_path, case):
    """A file has 200,000 records that are no spans, such as turns without length, or twice as many.

    The child process that reads it counts them. So this process never takes more than 24 MB, where objects
    for 200,000 records would take far more.
    """
    name, write_text = NO_SPANS[case]
    n_good_spans = N_GOOD_SPANS.get(name, 0)
    path = tmp_path / name
    for n_records in (200_000, 400_000):
        path.write_text(write_text(n_records))

        result = measured_import(tmp_path, path)

        assert result.peak_mb < 24
        if not result.refusal:
            assert result.seen == result.left_out + result.used
            assert result.used == n_good_spans
            assert result.left_out >= n_records


SPANS_OF_LITTLE = {
    "short rows": (
        "a.csv",
        lambda n: table_of_numbered_rows("movie,start_s,end_s,level", n, "m,{0},{0}.5,S"),
    ),
    "films and people": (
        "a.csv",
        lambda n: table_of_numbered_rows("movie,start_s,end_s,level,annotator", n, "m{0},1,2,S,a{0}"),
    ),
    "empty cells": (
        "a.csv",
        lambda n: table_of_numbered_rows(
            "movie,start_s,end_s,level" + "".join(f",c{k}" for k in range(200)),
            n // 20,
            "m,{0},{0}.5,S" + "," * 200,
        ),
    ),
    "judgements": (
        "a.csv",
        lambda n: table_of_numbered_rows(
            "movie,start_s,end_s,level,annotator,seen_score", n, "m,{0},{0}.5,S,a,0"
        ),
    ),
    "speakers": ("a.rttm", lambda n: "".join(f"SPEAKER f 1 {k} 1 <NA> <NA> A <NA> <NA>\n" for k in range(n))),
}
"""Files whose spans take much more memory than their bytes: the name, and what writes the text of n spans."""


@pytest.mark.long
@pytest.mark.nightly
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read as Linux says it")
@pytest.mark.parametrize("case", SPANS_OF_LITTLE)
def test_an_import_of_very_many_short_spans_keeps_to_its_limit_of_memory_or_is_refused(tmp_path, case):
    """A child process reads a file, and the process that imports it holds what the file says.

    160,000 or 320,000 spans of a few bytes take much more memory there than in the file. The process that
    imports them takes no more than the limit for the file's size, or refuses the file and says to divide it.
    320,000 spans are refused, but for two cases that need less: spans of one speaker without labels, and rows
    of 200 empty cells, of which there are only a twentieth as many.
    """
    file_name, write_text = SPANS_OF_LITTLE[case]
    for n_spans in (160_000, 320_000):
        path = tmp_path / file_name
        path.write_text(write_text(n_spans))

        result = measured_import(tmp_path, path)

        max_mb = limits_of(path.stat().st_size).memory >> 20
        assert result.peak_mb <= max_mb
        if result.refusal:
            assert "divide it" in result.refusal
    if case not in {"speakers", "empty cells"}:
        assert result.refusal


def srt_of(n_cues: int) -> str:
    """Write one cue again and again, each with a number of its own."""
    return "".join(SRT.replace("1\n", f"{number}\n", 1) + "\n" for number in range(n_cues))


def test_what_an_import_may_hold_is_counted_over_all_its_files(tmp_path, monkeypatch):
    """With 1.2 MB, each of two files of 600 cues can be held, and both together cannot."""
    limit_what_an_import_may_hold(monkeypatch, memory=1_200_000)
    first, second = tmp_path / "a.srt", tmp_path / "b.srt"
    for path in (first, second):
        path.write_text(srt_of(n_cues=600))
        import_spans([path], tmp_path)

    with pytest.raises(InputError, match=r"b\.srt.*divide it"):
        import_spans([first, second], tmp_path)


def limit_what_an_import_may_hold_to_1000_times_its_file(monkeypatch):
    """Let an import hold 1000 bytes of memory for each byte of its file."""
    monkeypatch.setattr(
        read_in_sandbox, "limits_of", lambda size: limits_of(size)._replace(memory=1000 * size)
    )


@contextmanager
def pipe_that_holds(text: str) -> Iterator[Path]:
    """Write a text into a pipe, close its writing end, and give the path of the other one."""
    read_end, write_end = os.pipe()
    os.write(write_end, text.encode())
    os.close(write_end)
    try:
        yield Path(f"/dev/fd/{read_end}")
    finally:
        os.close(read_end)


def test_the_memory_of_an_import_from_a_pipe_grows_with_what_is_read_from_the_pipe(tmp_path, monkeypatch):
    """An import may hold 1000 times the size of its file. Here the file is a pipe, with 60 subtitles.

    A pipe has the size 0 before it is read. If that counted, nothing could be imported from it.
    """
    limit_what_an_import_may_hold_to_1000_times_its_file(monkeypatch)

    with pipe_that_holds(srt_of(n_cues=60)) as path_of_pipe:
        imported = import_spans([path_of_pipe], tmp_path)

    assert len(imported.manifest) == 60


@pytest.mark.long
def test_an_import_whose_clips_get_too_many_columns_from_other_files_is_refused(tmp_path, monkeypatch):
    """In the manifest of an import all clips have the columns of all its files.

    An import may hold 1 MB of what its files say. One file has a clip with 500 columns, another one 100 clips
    with few columns, and each can be imported by itself. Together they would be 101 clips of 500 columns,
    which can't be held.
    """
    limit_what_an_import_may_hold(monkeypatch, memory=1 << 20)
    file_of_many_columns = tmp_path / "a.csv"
    columns = "".join(f",c{k}" for k in range(500))
    file_of_many_columns.write_text(f"movie,start_s,end_s,level{columns}\nm,1,2,S{',x' * 500}\n")
    file_of_many_clips = tmp_path / "b.csv"
    file_of_many_clips.write_text(table_of_numbered_rows("movie,start_s,end_s,level", 100, "n,{0},{0}.5,S"))
    import_spans([file_of_many_columns], tmp_path)
    import_spans([file_of_many_clips], tmp_path)

    with pytest.raises(InputError, match="columns of all files"):
        import_spans([file_of_many_columns, file_of_many_clips], tmp_path)


def test_annotators_with_columns_of_their_own_count_each(tmp_path, monkeypatch):
    """A table of 100 rows has a column of levels for each of 20 people: if all are read, it has 2000 clips.

    They cannot be held in 800,000 bytes of memory. The 200 clips of two people can.
    """
    limit_what_an_import_may_hold(monkeypatch, memory=800_000)
    twenty_people = [f"P{number}" for number in range(20)]
    columns = ",".join(f"{name} level" for name in twenty_people)
    path = tmp_path / "a.csv"
    path.write_text(table_of_numbered_rows(f"movie,start_s,end_s,{columns}", 100, "m,{0},{0}.5" + ",S" * 20))

    with pytest.raises(InputError, match="divide it"):
        import_spans([path], tmp_path, wide=twenty_people)
    of_two_people = import_spans([path], tmp_path, wide=twenty_people[:2])
    assert len(of_two_people.manifest) == 200


def test_a_table_with_unknown_headings_is_refused_for_these_even_if_its_rows_are_too_many(
    tmp_path, monkeypatch
):
    """A child process reads a table, and sends what it says to the process that imports it.

    This may hold 50,000 bytes of it, too little for 500 rows. But the headings film, from, to and rating are
    unknown, for which the child refuses the table before it sends any row: the person learns which option
    reads it (level=rating), and not that the table is too large.
    """
    limit_what_an_import_may_hold(monkeypatch, memory=50_000)
    path = tmp_path / "t.csv"
    path.write_text(table_of_numbered_rows("film,from,to,rating", 500, "m,{0},{0}.5,S"))

    with pytest.raises(UnreadColumnsError, match="level=rating"):
        import_spans([path], tmp_path)


def test_a_cell_that_is_too_long_is_refused_with_its_line(tmp_path):
    """A cell has at most 131,072 characters. The note in line 3 has 200,000."""
    path = tmp_path / "t.csv"
    path.write_text(f"movie,start_s,end_s,level,note\nm,1,2,S,a\nm,3,4,S,{'x' * 200_000}\n")
    with pytest.raises(ManifestError, match=r"line 3.*131,072"):
        import_spans([path], tmp_path)


def span_of_half_a_letter(file: SpanFile) -> FileContent[RawSpan]:
    """Read a span without an end, whose text no UTF-8 has: the first half of a letter of UTF-16."""
    return FileContent(file, [RawSpan("line 1", start_s=1.0, end_s=float("nan"), text=HALF_A_LETTER)])


def test_a_child_sends_back_a_text_that_no_utf8_can_hold(child, tmp_path):
    """A child, a process that reads files for us, reads a span from 1 s to no time (NaN).

    Its text is half a letter of UTF-16. Most answers come as msgpack, which cannot hold it.
    """
    path = tmp_path / "a.txt"
    path.write_text("a")

    content = read_in_sandbox.read_in_sandbox(child, path, Reading(), span_of_half_a_letter)

    (record,) = content.records
    assert (record.text, record.start_s) == (HALF_A_LETTER, 1.0)
    assert math.isnan(record.end_s)


def test_a_childs_message_has_every_fact_of_an_account():
    """A child process reads a file, and sends its account here as a message. A fact that this lacks is lost.

    The path is known here, and left-out records are sent apart.
    """
    fields = set(Account.__dataclass_fields__)
    assert set(read_in_sandbox._AccountMessage.__struct_fields__) == fields - {"path", "left_out"}


def test_a_childs_message_has_every_fact_of_a_table():
    """A child process reads a table, and sends it here as a message. A fact that this lacks is lost.

    The path is known here, and rows are sent apart.
    """
    fields = set(Table.__dataclass_fields__)
    assert set(read_in_sandbox._TableMessage.__struct_fields__) == fields - {"path", "rows"}


SOCKET_WITHOUT_FILTER = """
import socket
from obygaze_features import limits

limits._filter_calls = lambda: False  # the system has no filter of calls
limits.without_network()
socket.socket()
"""


def test_python_refuses_sockets_where_the_system_does_not():
    """A new Python forbids itself the network, on a system that can't filter calls, and makes a socket."""
    process = subprocess.run(
        [sys.executable, "-c", SOCKET_WITHOUT_FILTER], capture_output=True, text=True, check=False
    )
    assert "PermissionError" in process.stderr


MEGABYTE = 2**20
TERABYTE = 2**40


def test_the_memory_of_a_process_can_be_seen():
    """Python has more than a megabyte, and less than a terabyte. It may use 60 s, and has used less.

    So it exceeds no limit of a terabyte, and one of a megabyte by its memory.
    """
    this_process = os.getpid()
    nothing_before = limits.Used(cpu_s=0.0, memory=0)

    assert limits.used_by(this_process).memory > MEGABYTE
    assert limits.excess(this_process, Limits(cpu_s=60, memory=TERABYTE), nothing_before) == ""
    assert limits.excess(this_process, Limits(cpu_s=60, memory=MEGABYTE), nothing_before) == "memory"


def test_the_time_that_a_process_used_before_its_work_does_not_count():
    """A process may use 60 s of CPU since its work began: what it used in all, less what it had used before.

    This process has not used 61 s. If it is said to have used -61 s before, the difference is 61 s or more.
    """
    used_before = limits.Used(cpu_s=-61.0, memory=0)
    limits_of_work = Limits(cpu_s=60, memory=TERABYTE)
    assert limits.excess(os.getpid(), limits_of_work, used_before) == "time"


def test_a_table_of_more_concepts_than_the_memory_for_its_guessed_codebook_is_refused(tmp_path, monkeypatch):
    """A table's 200 rows have a concept each, "0 words" to "199 words".

    A child process guesses a codebook of them and sends it to this process, which may hold as much as is
    usual: that is enough. With 50,000 bytes it isn't, and the table is refused.
    """
    path = tmp_path / "t.csv"
    path.write_text(table_of_numbered_rows("film,level,concepts", 200, "a,S,{0} words"))
    assert len(guess_codebook(path).concepts) == 200

    limit_what_an_import_may_hold(monkeypatch, memory=50_000)
    with pytest.raises(InputError, match=r"t\.csv.*divide it"):
        guess_codebook(path)


def test_a_table_with_more_unknown_words_than_can_be_asked_about_is_refused(tmp_path, monkeypatch):
    """Each of the 5000 cells of the column "level" has a word of its own, "word 0" ..., which is no level.

    The child process that reads the table proposes, for each, to ask the person what it means. It sends these
    proposals to this process, where they take more than the 1 MB that an import may hold here.
    """
    path = tmp_path / "t.csv"
    path.write_text(table_of_numbered_rows("movie,start_s,end_s,level", 5000, "m,{0},{0}.5,word {0}"))
    limit_what_an_import_may_hold(monkeypatch, memory=1 << 20)

    with pytest.raises(InputError, match=r"t\.csv.*divide it"):
        import_spans([path], tmp_path)


def test_a_document_of_elan_with_too_many_references_among_annotations_is_refused(tmp_path, monkeypatch):
    """An annotation of ELAN may refer to another one above it, and so to all that this one refers to.

    In a chain of 90 annotations the first refers to none, the second to 1, and the last to all 89 others.
    This process keeps 0 + 1 + ... + 89 = 4005 references, which take more than 400,000 bytes.
    """
    first = alignable_annotation("a0", "t0", "t1", "w")
    others = ""
    for number in range(1, 90):
        others += ref_annotation(f"a{number}", above=f"a{number - 1}", text="w")
    path = tmp_path / "a.eaf"
    path.write_text(eaf({"t0": 0, "t1": 1000}, tier("T", first) + tier("U", others)))
    limit_what_an_import_may_hold(monkeypatch, memory=400_000)

    with pytest.raises(InputError, match=r"a\.eaf.*divide it"):
        import_spans([path], tmp_path)


def test_a_text_as_long_as_a_book_is_left_out(tmp_path):
    """A text has at most 131,072 characters. Of two keywords, one has 200,000."""
    short_keyword = '<keyword start="1s" duration="1s" value="Look"/>'
    long_keyword = f'<keyword start="1s" duration="1s" value="{"a," * 100_000}"/>'
    path = tmp_path / "a.fcpxml"
    path.write_text(f"<fcpxml><spine>{short_keyword}{long_keyword}</spine></fcpxml>")

    (account,) = import_spans([path], tmp_path).accounts

    assert (account.seen, account.used, account.n_left_out) == (2, 1, 1)
    assert "131,072 characters" in account.line()


@pytest.mark.parametrize("case", ["a long text", "languages", "headings", "spellings", "lines"])
def test_each_message_of_an_import_is_shorter_than_1500_characters(tmp_path, case):
    """A case of `LONG_NOTICES` is a file of which very much could be said, as it has 1000 languages.

    An import says what it has to say, in notices or as the reason of a refusal, in messages that fit on a
    screen: 1500 characters are some 15 lines.
    """
    name, text = LONG_NOTICES[case]
    path = tmp_path / name
    path.write_text(text)
    columns = {"level": ["x"]} if path.suffix == ".csv" else {}

    try:
        messages = import_spans([path], tmp_path, columns=columns).notices
    except ManifestError as refusal:
        messages = [str(refusal)]

    assert max(len(message) for message in messages) < 1500


LONG_NOTICES = {
    "a long text": (
        "a.fcpxml",
        f'<fcpxml><spine><keyword start="1s" duration="1s" value="{"a," * 50_000}"/></spine></fcpxml>',
    ),
    "languages": (
        "a.ttml",
        '<tt xmlns="http://www.w3.org/ns/ttml"><body><div>'
        + "".join(f'<p xml:lang="l{k}" begin="{k}s" dur="1s">a</p>' for k in range(1000))
        + "</div></body></tt>",
    ),
    "headings": ("a.csv", "movie,start_s,end_s" + "".join(f",c{k}" for k in range(900)) + "\n"),
    "spellings": (
        "a.csv",
        "movie,start_s,end_s,level,annotator\n"
        + "".join(f"m,{k},{k}.5,S{' ' * k}(S),a\n" for k in range(1, 500)),
    ),
    "lines": (
        "a.csv",
        "movie,start_s,end_s,level,concepts,annotator,seen_score,judged_at\n"
        + "".join(f"m,{k},{k}.5,S,Body,a,1,2024-01-01T00:00:00\n" for k in range(1000)),
    ),
}


def table_of_numbered_rows(headings: str, n_rows: int, row: str) -> str:
    """Write a table of so many rows, in each of which {0} stands for its number.

    Two rows of "m,{0},{0}.5" are "m,0,0.5" and "m,1,1.5".
    """
    return "\n".join([headings, *(row.format(number) for number in range(n_rows))]) + "\n"


TEXTGRID = (
    'File type = "ooTextFile"\nObject class = "TextGrid"\n0\n1\n<exists>\n1\n"IntervalTier" "x" 0 1 1 0 1\n'
)
VIA = "# CSV_HEADER = metadata_id,file_list,flags,temporal_coordinates,spatial_coordinates,metadata\n"


def activitynet(label: str) -> str:
    """Write a database of ActivityNet with a label, which is JSON."""
    annotation = '{"segment": [1, 2], "label": ' + label + "}"
    return '{"database": {"v": {"duration": 5, "annotations": [' + annotation + "]}}}"


WITHOUT_END = '{"word": "a", "start": 1}'


def words_in_a_row(n: int) -> list[str]:
    """Write words of a transcript, each of which follows the one before at once."""
    return [f'{{"word": "a", "start": {k}, "end": {k + 1}}}' for k in range(n)]


def lists_of_concepts(n: int) -> str:
    """Write keywords of long lists, each of which differs from the others."""
    values = [f"{k}," + "a," * 1000 for k in range(n)]
    return "".join(f'<keyword start="{k}s" duration="1s" value="{value}"/>' for k, value in enumerate(values))


def gaps(n: int) -> str:
    """Write n gaps inside each other, with a marker in each.

    Each begins a fraction of a second behind the one around it, and all denominators differ: the sum of
    the fractions, the time of the innermost marker, has ever more digits.
    """
    opened = ""
    for k in range(n):
        denominator = 10**17 + 2 * k + 1
        opened += f'<gap offset="1/{denominator}s"><marker start="1s" duration="9s" value="a"/>'
    return f"<fcpxml><spine>{opened}{'</gap>' * n}</spine></fcpxml>"


def titles(n: int) -> list[str]:
    """Write titles that differ in their signs alone."""
    return ["a" + f"{number:b}".translate({48: "!", 49: "?"}) for number in range(n)]


def region(name: str, label: str) -> str:
    """Write a region of Label Studio of always the same times."""
    value = f'{{"ranges": [{{"start": 1, "end": 50}}], "timelinelabels": ["{label}"]}}'
    return f'{{"type": "timelinelabels", "from_name": "{name}", "value": {value}}}'


def task(regions: list[str]) -> str:
    """Write a task of Label Studio with its regions."""
    annotation = f'{{"id": 1, "result": [{",".join(regions)}]}}'
    return f'[{{"id": 1, "data": {{"video": "a.mp4", "fps": 25}}, "annotations": [{annotation}]}}]'


HOSTILE = {
    "a long text": ("a.TextGrid", lambda n: TEXTGRID + '"' + "a" * (40 * n) + '"\n'),
    "quotation marks": ("a.TextGrid", lambda n: TEXTGRID + '"' * (10 * n + 1) + "\n"),
    "a list of players": (
        "a.csv",
        lambda n: f"Observation id,Source,Start (s),Stop (s),Behavior\no,{';' * n},1,2,b\n",
    ),
    "annotations again and again": ("a.json", lambda n: '{"a": {' + '"annotations":[' * n),
    "columns": (
        "a.csv",
        lambda n: "film,from,to" + "".join(f",c{k}" for k in range(n // 20)) + "\nm,1,2" + ",x" * (n // 20),
    ),
    "offsets": ("a.txt", lambda n: "#" * n + "\nt\tp\t1.0\t2.0\tw\n"),
    "carriage returns": ("a.srt", lambda n: "\r" * n + "1\n00:00:01,000 --> 00:00:02,000\nHello\n"),
    "words": (
        "a.csv",
        lambda n: table_of_numbered_rows("movie,start_s,end_s,level", n // 60, "m,{0},{0}.5,w{0}"),
    ),
    "lists": (
        "a.csv",
        lambda n: table_of_numbered_rows("movie,start_s,end_s,concepts", n // 60, "m,{0},{0}.5,a{0};b"),
    ),
    "texts of no known column": (
        "a.csv",
        lambda n: table_of_numbered_rows("film,from,to,x", n // 60, "m,{0},{0}.5,w{0}"),
    ),
    "columns of labels": (
        "a.csv",
        lambda n: table_of_numbered_rows("film" + ",c" * (n // 400), 4, "m" + ",S" * (n // 400)),
    ),
    "columns of clocks": (
        "a.csv",
        lambda n: table_of_numbered_rows("film" + ",c" * 200, n // 4000, "m" + ",00:0{0}" * 200),
    ),
    "columns of kinds": (
        "a.csv",
        lambda n: table_of_numbered_rows("film" + ",c" * 200, n // 2000, "m,note" + ",level" * 199),
    ),
    "columns beside those of a tool": (
        "a.csv",
        lambda n: table_of_numbered_rows(
            "Behavior,Start (s),Stop (s)" + ",c" * (n // 400), n // 1000, "b,{0},{0}.5" + ",S" * (n // 400)
        ),
    ),
    "annotators of one span": (
        "a.csv",
        lambda n: table_of_numbered_rows("movie,start_s,end_s,level,annotator", n // 40, "m,1,2,S,a{0}"),
    ),
    "folders": ("a.csv", lambda n: f"video,start_s,end_s,level\n{'x/' * (n // 4)}f.mp4,1,2,S\n"),
    "suffixes": ("a.csv", lambda n: f"video,start_s,end_s,level\nf{'.srt' * (n // 10)},1,2,S\n"),
    "deep labels": ("a.json", lambda _: activitynet(f"{'[' * 900}{']' * 900}")),
    "deep texts": (
        "a.json",
        lambda _: f'{{"moviegraphs": [{{"situation": {"[" * 900}{"]" * 900}}}]}}',
    ),
    "a cell of megabytes": ("a.csv", lambda n: VIA + '"m","[""' + "f" * 2 * n + '""]"\n'),
    "cuts": (
        "a.json",
        lambda n: activitynet(
            ",".join(['1}, {"segment": [1, 9], "label": 2'] * (n // 50)),
        ),
    ),
    "speeds": (
        "a.ass",
        lambda n: "[Script Info]\n" + "Timer: 50\n" * (n // 5),
    ),
    "defaults of attributes": (
        "a.eaf",
        lambda n: (
            f'<!DOCTYPE A [<!ATTLIST B x CDATA "{"y" * n}">]><ANNOTATION_DOCUMENT>'
            f"{'<B/>' * (n // 10)}</ANNOTATION_DOCUMENT>"
        ),
    ),
    "words that make one sentence": (
        "a.json",
        lambda n: f'{{"words": [{",".join(words_in_a_row(n // 12))}]}}',
    ),
    "words without ends": (
        "a.json",
        lambda n: f'{{"words": [{",".join([WITHOUT_END] * (n // 12))}]}}',
    ),
    "lists of concepts in texts": (
        "a.fcpxml",
        lambda n: f"<fcpxml><spine>{lists_of_concepts(n // 200)}</spine></fcpxml>",
    ),
    "places with times of their own": ("a.fcpxml", lambda n: gaps(n // 10)),
    "titles that ids write alike": (
        "a.csv",
        lambda n: (
            "movie,start_s,end_s,level,annotator\n" + "".join(f"{t},1,2,S,a\n" for t in titles(n // 20))
        ),
    ),
    "a name of languages": ("a.csv", lambda n: f"movie,start_s,end_s\n{'.en_us' * (n // 10)}.srt,1,2\n"),
}


@pytest.mark.long
@pytest.mark.parametrize("case", HOSTILE)
def test_files_that_are_made_to_take_long_are_read_in_5_s_or_refused_in_a_short_message(
    tmp_path, monkeypatch, case
):
    """In each of these files something is very long, or comes very often: about 200,000 characters.

    Neither the child process that reads it nor this one takes 5 s: after that the child would be stopped with
    an error of another class, which fails the test. If the file is refused, the message is below 10,000
    characters.
    """
    limit_a_childs_time(monkeypatch, cpu_s=5)
    name, write_text = HOSTILE[case]
    path = tmp_path / name
    path.write_text(write_text(200_000))

    message_of_refusal = ""
    with within_cpu_s(limit_s=5):
        try:
            import_spans([path], tmp_path, annotator="a")
        except ManifestError as refusal:
            message_of_refusal = str(refusal)

    assert len(message_of_refusal) < 10_000


def test_a_few_labels_of_one_span_are_joined(tmp_path):
    """A file of Label Studio has three regions of the same times: the level S, and two concepts."""
    path = tmp_path / "a.json"
    path.write_text(task([region("level", "S"), region("concepts", "Body"), region("concepts", "Look")]))

    (clip,) = import_spans([path], tmp_path, annotator="a", rate=Fraction(25)).manifest

    assert (clip.level, clip.concepts) == ("S", ("Look", "Body"))


def test_very_many_levels_and_concepts_of_one_span_are_refused(tmp_path):
    """A file has 1000 levels S and 1000 concepts Body, all from 1 to 50 s, in no pairs.

    To compare all pairs would take long, so that the file is refused.
    """
    path = tmp_path / "a.json"
    path.write_text(task([region("level", "S")] * 1000 + [region("concepts", "Body")] * 1000))
    with pytest.raises(ManifestError, match="very many levels and concepts"):
        import_spans([path], tmp_path, annotator="a", rate=Fraction(25))


@pytest.mark.long
def test_very_many_regions_of_one_span_are_joined_to_a_clip_all_at_once(tmp_path):
    """Label Studio has 10,000 regions of the same times, each with the concept Body: they become one clip.

    If a clip were made anew for each region that joins it, 5 s were not enough.
    """
    path = tmp_path / "a.json"
    path.write_text(task([region("concepts", "Body")] * 10_000))
    with within_cpu_s(limit_s=5):
        import_spans([path], tmp_path, annotator="a", rate=Fraction(25))


@pytest.mark.long
def test_very_many_rows_of_one_span_are_joined_to_a_clip_all_at_once(tmp_path):
    """10,000 rows of a table are about the same span, each with a concept of its own: they become one clip.

    If a clip were made anew for each row that joins it, 5 s were not enough.
    """
    names = [f"thing {number}" for number in range(10_000)]
    levels = '[[levels]]\nname = "calm"\n[[levels]]\nname = "violent"\n'
    concepts = "".join(f'[[concepts]]\nname = "{name}"\nvisual = true\n' for name in names)
    file_of_codebook = tmp_path / "codebook.toml"
    file_of_codebook.write_text(f'name = "v"\nversion = "1"\n{levels}{concepts}')
    codebook = load_codebook(file_of_codebook)
    rows_of_one_span = "".join(f"m,1,2,{name},a\n" for name in names)
    path = tmp_path / "a.csv"
    path.write_text(f"movie,start_s,end_s,concepts,annotator\n{rows_of_one_span}")

    with within_cpu_s(limit_s=5):
        (clip,) = import_spans([path], tmp_path, codebook=codebook).manifest
    assert len(clip.concepts) == 10_000


def test_the_rows_of_a_table_without_labels_are_not_all_asked_for_labels_again_for_each_row():
    """Where no row has a label, none is left out as a sum. One look at all 60,000 rows finds this out.

    If all of them were looked through again for each row, 5 s were not enough.
    """
    cells = {"movie": "a", "start_s": "1", "end_s": "2", "remark": "dark"}
    rows = tuple(Row(line, cells) for line in range(60_000))
    table = Table(Path("t.csv"), tuple(cells), rows)
    words = LabelWords(builtin_codebook("obygaze12"))

    with within_cpu_s(limit_s=5):
        found = clip_rows(table, Headings(), words)

    assert found.left_out == ()
    assert len(found.table.rows) == 60_000


def test_a_free_number_for_a_clip_is_found_without_trying_all_that_are_taken():
    """100 files number 500 clips of a film, from 1 on; where a number is taken, the next free one counts.

    If numbers were tried one by one, 5 s were not enough for 50,000 clips.
    """
    ids = ClipIds()
    made = []

    with within_cpu_s(limit_s=5):
        for _ in range(100):
            for number in range(1, 501):
                made.append(ids.new("film", number))  # noqa: PERF401 - two plain loops

    assert made[:2] == ["film-0001", "film-0002"]
    assert made[500] == "film-0501"
    assert len(set(made)) == 50_000


def test_lines_on_players_above_a_table_of_boris_are_not_read_again_for_each_row(tmp_path, monkeypatch):
    """BORIS names the files that its players show in lines above a table: "Player #1", then the files.

    Here ten such lines of 100,000 characters stand above 3000 rows. A child process that reads the table, and
    this one, may take 5 s: enough to read the lines once, but not 3000 times. As the rows don't say which of
    the ten files they are of, the table is refused.
    """
    limit_a_childs_time(monkeypatch, cpu_s=5)
    players = f"Player #1\t{'player #1 ' * 10_000}\n" * 10
    headings = "Observation id\tMedia file\tTime\tSubject\tBehavior\tBehavior type"
    path = tmp_path / "a.tsv"
    path.write_text(players + table_of_numbered_rows(headings, 3000, "\t\t{0}\ts\tb\tSTART"))
    with within_cpu_s(limit_s=5), pytest.raises(ManifestError, match="10 media"):
        import_spans([path], tmp_path, kind="boris")


@pytest.mark.long
def test_the_time_to_check_tasks_of_a_codebook_grows_no_faster_than_their_number_of_levels(tmp_path):
    """Each of 600 tasks tells one of 700 levels from the others: 420,000 names of levels, to be read in 5 s.

    If each name were compared with all levels, that would not be enough.
    """
    names = [f"L{number}" for number in range(700)]
    levels = "".join(f'[[levels]]\nname = "{name}"\n' for name in names)
    positive = ",".join(f'"{name}"' for name in names[1:])
    tasks = ""
    for number in range(600):
        tasks += f'[tasks.t{number}]\nnegative = ["L0"]\npositive = [{positive}]\n'
    path = tmp_path / "codebook.toml"
    path.write_text(f'name = "v"\nversion = "1"\n{levels}{tasks}')

    with within_cpu_s(limit_s=5):
        codebook = load_codebook(path)

    assert len(codebook.tasks) == 600


@pytest.mark.parametrize("heading", ["", "Unnamed: 0"])
def test_a_manifest_with_very_many_columns_without_headings_is_refused_soon(tmp_path, heading):
    """A manifest is read in this process, whose time nothing limits, and not in a child.

    One of 10,000 columns without headings and 20,000 rows must be refused in less than 5 s.
    """
    path = tmp_path / "a.csv"
    path.write_text("movie,start_s,end_s,level" + f",{heading}" * 10_000 + "\n" + "m\n" * 20_000)

    with within_cpu_s(limit_s=5), pytest.raises(ManifestError):
        read_manifest(path)


@pytest.mark.long
def test_films_of_a_table_are_found_in_a_folder_without_comparing_each_with_every_file(tmp_path):
    """The folder has films 0 to 1499, and the table names films 750 to 2249: 750 of them are there.

    If each name were compared with each file, 5 s were not enough.
    """
    folder = tmp_path / "films"
    folder.mkdir()
    for number in range(1500):
        (folder / f"film {number}.mp4").touch()
    table = tmp_path / "t.csv"
    rows_of_films = "".join(f"film {number},1,2,S\n" for number in range(750, 2250))
    table.write_text(f"movie,start_s,end_s,level\n{rows_of_films}")

    with within_cpu_s(limit_s=5):
        imported = import_spans([table], tmp_path, videos=folder)

    assert sum(clip.video != "" for clip in imported.manifest) == 750


@pytest.mark.long
def test_the_fuzzer_of_tables_takes_no_refusal_for_a_finding():
    """The fuzzer reads damaged tables. Most of them are refused, which is right, and none is given up."""
    process = python("benchmarks/fuzz.py", "--inputs", 40, "spans table", cwd=ROOT)
    assert "spans table: 40 inputs, 0 findings" in process.stdout
