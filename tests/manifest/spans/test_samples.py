"""The sample of each kind in kinds.toml is read however it is saved; damage is refused or counted."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import import_spans
from obygaze_features.manifest.spans.span_file import KINDS

SIGNS = ("", "\0", "x", "-", ":", ",", "\xff", " ", "9", "<", "\t", '"', ";", "\n")


def import_file(path, kind=""):
    """Import a file as a kind, or as what its content says it is."""
    return import_spans([path], path.parent, kind, rate=Fraction(25))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_sample_is_read_as_its_kind_in_every_marked_encoding_and_line_end(tmp_path, kind, encoding):
    """The sample of each kind, a file as the tool writes it, has one span, from 1 to 5 s of tt0000042.

    A mark at its beginning tells the encoding, or it is UTF-8.
    """
    sample = KINDS[kind]["sample"]
    path = tmp_path / "tt0000042.x"
    for line_end in ("\n", "\r\n", "\r"):
        path.write_bytes(sample.replace("\n", line_end).encode(encoding))

        imported = import_file(path)

        (account,) = imported.accounts
        assert (account.kind, account.used) == (kind, 1)
        assert [(c.movie, c.start_s, c.end_s) for c in imported.manifest] == [("tt0000042", 1.0, 5.0)]


def damaged(text, data):
    """Put another sign, or none, in place of one sign or more of a text. Hypothesis draws which by `data`."""
    first = data.draw(st.integers(0, len(text) - 1))
    n_replaced = data.draw(st.one_of(st.just(1), st.integers(0, len(text) - first)))
    other_sign = data.draw(st.sampled_from(SIGNS))
    return text[:first] + other_sign + text[first + n_replaced :]


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_a_damaged_sample_is_read_with_each_record_counted_or_refused_with_its_path(tmp_path, kind, data):
    """A sample is a small file as a tool writes it. In it some signs are replaced by another one, or none.

    Either it is refused by its path, or it is read, and the account of the import says of all records that it
    has seen whether they are used or left out.
    """
    sample = KINDS[kind]["sample"]
    path = tmp_path / "tt0000042.x"
    path.write_text(damaged(sample, data), encoding="latin-1", newline="")

    try:
        imported = import_file(path, kind)
    except ManifestError as error:
        assert str(path) in str(error)  # noqa: PT017 - a change may be read or refused
    else:
        (account,) = imported.accounts
        assert account.seen == account.used + len(account.left_out)
