"""Each format of the table is told by its own entry alone; what is not read is refused with the way out."""

import gzip
import json
from typing import NamedTuple

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest.spans.formats import FORMATS
from obygaze_features.manifest.spans.sources import kind_of
from obygaze_features.manifest.spans.span_file import SpanFile
from tests.files import written
from tests.manifest.spans.files import EXAMPLES
from tests.manifest.spans.format_samples import READ_KINDS, UNREAD, sample

NAMES_OF_FORMATS = [known.name for known in FORMATS]
"""Names of all formats in the table: of those that are read, and of those that are refused with a way out."""


class Recognised(NamedTuple):
    """As what a file is recognised by its content."""

    kinds: list[str]
    """Kinds by which it would be read: one or none."""
    unread_formats: list[str]
    """Formats that are not read."""


def recognised(path):
    """Return which kinds and formats recognise a file."""
    file = SpanFile(path)
    unread_formats = [known.name for known in FORMATS if not known.kind and known.tells(file)]
    try:
        kinds = [kind_of(SpanFile(path))]
    except ManifestError:
        kinds = []
    return Recognised(kinds, unread_formats)


def test_there_is_a_sample_of_each_format():
    """Each format of the table is either read, as a kind, or refused with a way out. Both have samples."""
    assert set(NAMES_OF_FORMATS) == READ_KINDS.keys() | UNREAD.keys()


def test_each_format_is_in_the_table_once():
    """Each format has one entry in the table of formats, by its name."""
    assert len(NAMES_OF_FORMATS) == len(set(NAMES_OF_FORMATS))


def test_the_table_has_at_least_70_formats():
    """Formats are added. This fails if one is lost from the table and from the samples alike."""
    assert len(NAMES_OF_FORMATS) >= 70


FORMATS_THAT_ARE_READ = [known for known in FORMATS if known.kind]


@pytest.mark.parametrize("known", FORMATS_THAT_ARE_READ, ids=[known.name for known in FORMATS_THAT_ARE_READ])
def test_a_sample_of_a_format_that_is_read_is_recognised_by_its_kind_alone(tmp_path, known):
    """Of over 70 formats exactly one recognises the file. Its suffix .x says nothing."""
    path = written(tmp_path / "a.x", sample(known.name))
    assert recognised(path) == Recognised(kinds=[known.kind], unread_formats=[])


@pytest.mark.parametrize("kind", EXAMPLES)
def test_an_example_of_a_kind_is_recognised_by_its_kind_alone(tmp_path, kind):
    """An example is a file of a tool, longer than the sample. Its suffix .x says nothing."""
    path = written(tmp_path / "a.x", EXAMPLES[kind].content)
    assert recognised(path) == Recognised(kinds=[kind], unread_formats=[])


@pytest.mark.parametrize("name", UNREAD)
def test_a_sample_of_a_format_that_is_not_read_is_recognised_by_its_entry_alone(tmp_path, name):
    """Of over 70 formats exactly one recognises the file. Its suffix .x says nothing."""
    path = tmp_path / "a.x"
    path.write_bytes(sample(name))
    assert recognised(path) == Recognised(kinds=[], unread_formats=[name])


@pytest.mark.parametrize("name", UNREAD)
def test_a_file_that_is_not_read_is_refused_in_one_line_with_the_way_out(refusal_of, name):
    """We know the format and can't read it. The error says how to export something that can be read."""
    (known,) = [known for known in FORMATS if known.name == name]

    refusal = refusal_of({"a.x": sample(name)})

    message = str(refusal)
    assert f"{known.name} ({known.tool}): {known.way_out}" in message
    assert "\n" not in message


@pytest.mark.parametrize("name", [name for name, content in UNREAD.items() if isinstance(content, str)])
def test_a_format_is_recognised_however_its_text_is_saved(tmp_path, name):
    """The sample of a format that is not read is told by its content, so that a person gets advice for it.

    A byte order mark (three bytes by which Windows marks UTF-8), line ends of Windows, or empty lines above
    change nothing.
    """
    content = sample(name)
    with_mark = b"\xef\xbb\xbf" + content
    with_line_ends_of_windows = content.replace(b"\n", b"\r\n")
    with_empty_lines = b"\n\n" + content
    path = tmp_path / "a.x"
    for saved in (with_mark, with_line_ends_of_windows, with_empty_lines):
        path.write_bytes(saved)
        assert recognised(path) == Recognised(kinds=[], unread_formats=[name])


def test_a_project_of_premiere_is_recognised_as_premiere_compresses_it(tmp_path):
    """Premiere Pro saves its projects, which are XML, compressed with gzip."""
    path = tmp_path / "a.x"
    path.write_bytes(gzip.compress(sample("project (.prproj)")))
    assert recognised(path) == Recognised(kinds=[], unread_formats=["project (.prproj)"])


@pytest.mark.parametrize(
    "content",
    [
        '{"results": {"f": [1, 2]}}',
        '{"hello": 1}',
        json.dumps(
            {"type": "object", "properties": {"start": {"type": "number"}, "id": {"type": "integer"}}}
        ),
        "[1, 2]",
        "<notes><note>a</note></notes>",
        "only words\nand more words\n",
        "a\tb\t1.5\t2.5\nc\td\t9.5\t3.5\n",
        '{"results": [',
    ],
    ids=[
        "results of no tool",
        "JSON of a word",
        "a schema of JSON with start and id",
        "a list of numbers",
        "XML of no tool",
        "sentences",
        "a table without a header whose times go back",
        "JSON that is cut short",
    ],
)
def test_a_file_of_no_known_format_is_refused_in_a_line_with_the_nearest_formats(refusal_of, content):
    """The line ends with "the nearest are" and at least three formats, each with its tool."""
    refusal = refusal_of({"a.x": content})

    message = str(refusal)
    _, _, nearest = message.partition("the nearest are ")
    named = [known.name for known in FORMATS if f"{known.name} ({known.tool})" in nearest]
    assert len(named) >= 3
    assert "\n" not in message


def test_the_nearest_formats_to_an_unknown_file_are_those_whose_words_it_has(import_files):
    """A file has the words of a transcript of Deepgram: results, channels, alternatives and metadata.

    But "channels" is a number and no list of channels, so that it is none, and is refused. The refusal names
    Deepgram among the nearest formats.
    """
    like_deepgram = {"results": {"channels": 1, "alternatives": []}, "metadata": {}}
    with pytest.raises(ManifestError, match="Deepgram"):
        import_files({"a.json": json.dumps(like_deepgram)})
