"""Files with a JSON document on each line, of tools whose lines are not read."""

import pytest

from obygaze_features.errors import ManifestError


def test_json_lines_are_not_called_damaged(import_files):
    """A file of no known tool has a document on each line: nothing of it is damaged or cut short."""
    content = '{"id": 1, "text": "a", "label": ["S"]}\n{"id": 2, "text": "b", "label": ["EN"]}\n'
    with pytest.raises(ManifestError, match="more begins at line 2, as in JSON lines") as refusal:
        import_files({"t.jsonl": content})
    assert "cut short" not in str(refusal.value)


def test_the_message_on_a_document_that_lacks_its_end_says_that_it_is_cut_short(import_files):
    """A document of JSON is a list, whose last bracket is missing."""
    with pytest.raises(ManifestError, match="cut short"):
        import_files({"t.json": '[{"id": 1, "text": "a"},'})


def test_prodigys_choices_are_known_by_their_tool(import_files):
    """A file of the tool Prodigy says which option was chosen for each of two films, without spans of them.

    The refusal names the tool.
    """
    lines = [
        '{"video": "f.mp4", "accept": ["S"], "answer": "accept", "_task_hash": 2}',
        '{"video": "g.mp4", "accept": ["EN"], "answer": "ignore", "_task_hash": 3}',
    ]
    with pytest.raises(ManifestError, match="Prodigy"):
        import_files({"t.jsonl": "\n".join(lines)})
