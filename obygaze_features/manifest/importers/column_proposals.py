"""Propose how to read a person's table: what each column is, by what its cells hold, then by its heading.

One place decides, for tables whose headings are none of ours and for columns that nothing reads. It looks for
times, labels, films and annotators, in this order; each takes the columns that it needs from the rest. What
comes out are the options of `manifest import spans` that read all of it, as one line.
"""

from collections.abc import Iterable

from obygaze_features.manifest.importers.annotator_columns import AnnotatorColumns
from obygaze_features.manifest.importers.film_columns import FilmColumns
from obygaze_features.manifest.importers.label_columns import LabelColumns
from obygaze_features.manifest.importers.proposal import Proposal
from obygaze_features.manifest.importers.table_layout import Layout
from obygaze_features.manifest.importers.time_columns import TimeColumns
from obygaze_features.manifest.importers.unread_columns import UnreadColumns
from obygaze_features.manifest.importers.word_proposals import WordProposals
from obygaze_features.manifest.spans.label_words import LabelWords
from obygaze_features.manifest.spans.span_file import SpanFile


def propose(
    file: SpanFile, layout: Layout, read: Iterable[str], words: LabelWords, annotator: str = ""
) -> Proposal:
    """Propose a meaning (times, labels, film, annotator) for the columns of a table that are not read yet.

    Parameters
    ----------
    file
        The file of the table.
    layout
        The table. Columns that a heading or an option of the person identifies have a manifest's name.
    read
        Columns that are read already.
    words
        The words of the codebook.
    annotator
        The annotator's name from the person's option; "" if it is not given.
    """
    unread = UnreadColumns(file, layout, read, words, annotator)
    # Each step adds to `unread.proposal`; the columns that it proposes are not considered by later steps.
    TimeColumns(unread).propose_times()
    LabelColumns(unread).propose_labels()
    FilmColumns(unread).propose_films()
    AnnotatorColumns(unread).propose_annotators()
    WordProposals(unread).propose_meanings()
    return unread.proposal
