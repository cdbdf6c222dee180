"""Each format of the table is told by its own entry alone; what is not read is refused with the way out."""

import json

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest.spans.formats import FORMATS
from obygaze_features.manifest.spans.sources import kind_of
from obygaze_features.manifest.spans.span_file import SpanFile
from tests.manifest.spans.files import EXAMPLES
from tests.manifest.spans.format_samples import READ_KINDS, UNREAD, sample

NAMES = [known.name for known in FORMATS]


def told_by(path):
    """Return the kinds that would read a file, and the formats that are not read and recognise it."""
    file = SpanFile(path)
    unread = [entry.name for entry in FORMATS if not entry.kind and entry.tells(file)]
    try:
        kinds = [kind_of(SpanFile(path))]
    except ManifestError:
        kinds = []
    return kinds, unread


def test_there_is_a_sample_of_each_format():
    assert set(NAMES) == READ_KINDS.keys() | UNREAD.keys()


def test_each_format_is_in_the_table_once():
    assert len(NAMES) == len(set(NAMES))
    assert len(NAMES) >= 70  # formats are added, and none is lost from table and samples alike


@pytest.mark.parametrize("known", FORMATS, ids=NAMES)
def test_a_sample_is_recognised_by_its_own_entry_alone(tmp_path, known):
    """Of over 70 formats exactly one recognises the file."""
    path = tmp_path / "a.x"
    path.write_bytes(sample(known.name))
    if known.kind:
        assert told_by(path) == ([known.kind], [])
    else:
        assert told_by(path) == ([], [known.name])


@pytest.mark.parametrize("kind", EXAMPLES)
def test_an_example_of_a_kind_is_recognised_by_its_kind_alone(tmp_path, kind):
    content = EXAMPLES[kind].content
    path = tmp_path / "a.x"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert told_by(path) == ([kind], [])


@pytest.mark.parametrize("name", UNREAD)
def test_a_file_that_is_not_read_is_refused_in_one_line_with_the_way_out(import_files, name):
    """We know the format and can't read it. The error says how to export something that can be read."""
    (known,) = [known for known in FORMATS if known.name == name]
    with pytest.raises(ManifestError) as refused:
        import_files({"a.x": sample(name)})
    line = str(refused.value)
    assert f"{known.name} ({known.tool}): {known.way_out}" in line
    assert "\n" not in line


@pytest.mark.parametrize("name", UNREAD)
def test_a_format_is_recognised_however_its_text_is_saved(tmp_path, name):
    """A byte order mark, line ends of Windows and empty lines above change nothing."""
    content = sample(name)
    path = tmp_path / "a.x"
    if not isinstance(UNREAD[name], str):
        pytest.skip("no text")
    for form in (b"\xef\xbb\xbf" + content, content.replace(b"\n", b"\r\n"), b"\n\n" + content):
        path.write_bytes(form)
        assert told_by(path) == ([], [name])


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
def test_a_file_of_no_known_format_is_refused_in_a_line_with_the_nearest_formats(import_files, content):
    with pytest.raises(ManifestError) as refused:
        import_files({"a.x": content})
    line = str(refused.value)
    _, _, nearest = line.partition("the nearest are ")
    named = [entry.name for entry in FORMATS if f"{entry.name} ({entry.tool})" in nearest]

    assert len(named) >= 3
    assert "\n" not in line


def test_the_nearest_formats_are_those_of_like_words(import_files):
    transcript = {"results": {"channels": 1, "alternatives": []}, "metadata": {}}
    with pytest.raises(ManifestError, match="Deepgram"):
        import_files({"a.json": json.dumps(transcript)})
