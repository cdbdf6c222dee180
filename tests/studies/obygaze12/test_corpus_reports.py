"""Reports of annotations: by column, by threshold, by sets, with what the paper prints beside."""

from dataclasses import replace
from pathlib import Path

import pytest

from obygaze_features.manifest import Clip, LabelPolicy, Manifest, windows
from obygaze_features.manifest.projection import sweep
from obygaze_models.report import plain
from obygaze_studies.obygaze12.composition import composition_report, group_report, sweep_report

PAPER = LabelPolicy.PAPER
RAW = LabelPolicy.RAW


def rows_of(report, key):
    """Return the rows of a report's data, as dictionaries by the value in one column."""
    return report.data.set_index(key).to_dict(orient="index")


def test_films_of_obygaze12_by_genre_are_those_of_table_3(obygaze12):
    """Table 3 of the ObyGaze12 paper has the number of films of each genre; most of the 12 are of several."""
    report = group_report(obygaze12, "genres", PAPER)

    row_of_genre = rows_of(report, "genres")
    n_films = {genre: row["movies"] for genre, row in row_of_genre.items()}
    assert n_films == {
        "all": 12, "comedy": 8, "drama": 10, "family": 1, "mystery": 2, "romantic": 7, "thriller": 1,
    }  # fmt: skip
    assert row_of_genre["all"]["clips"] == len(obygaze12)
    assert any("in several groups" in note for note in report.notes)


def test_films_and_clips_of_obygaze12_by_year_are_those_of_table_3(obygaze12):
    """A film has one year, so that the clips of all years add up.

    Two films are of 2009, and no clip of 2000 is S.
    """
    row_of_year = rows_of(group_report(obygaze12, "year", PAPER), "year")

    n_clips_of_years = [row["clips"] for year, row in row_of_year.items() if year != "all"]
    assert sum(n_clips_of_years) == len(obygaze12)
    assert row_of_year["2009"]["movies"] == 2
    assert row_of_year["2000"]["S"] == 0


def sweep_onto_windows(segments, thresholds):
    """Report on the levels that windows of 46 s get from segments which cover a share of them."""
    projected = sweep(segments, windows(segments, seconds=46), thresholds)
    return sweep_report(projected, "windows of 46 s", RAW)


def last_row(report):
    """Return the cells of the printed row of changes from the first to the last threshold, by heading."""
    (block, *_) = report.blocks
    return dict(zip(block.headers, block.rows[-1], strict=True))


@pytest.mark.long
def test_higher_thresholds_give_more_en_and_less_of_other_levels(segments):
    """The paper (App. 7.2) prints changes of ObyGaze12's clips: EN +76, HN +68, NS -42, S -103.

    A sweep of one threshold changes nothing.
    """
    report = sweep_onto_windows(segments, (0.1, 0.2, 0.3, 0.4))
    n_clips = report.data.pivot_table(index="threshold", columns="level", values="clips")
    assert n_clips["EN"].tolist() == [1061, 1204, 1374, 1552]
    assert n_clips["HN"].tolist() == [852, 850, 838, 792]
    assert n_clips["NS"].tolist() == [207, 204, 187, 182]
    assert n_clips["S"].tolist() == [1225, 1087, 946, 819]
    change = {"EN": "+491", "HN": "-60", "NS": "-25", "S": "-406"}  # from .1 to .4
    assert change.items() <= last_row(report).items()
    assert any("[+76, +68, -42, -103]" in note for note in report.notes)

    change_of_one = {"EN": "+0", "HN": "+0", "NS": "+0", "S": "+0"}
    assert change_of_one.items() <= last_row(sweep_onto_windows(segments, [0.2])).items()


def test_reports_on_another_corpus_than_the_papers_have_no_printed_numbers():
    """The corpus has two clips of a film m, which is none of ObyGaze12's."""
    clips = Manifest((Clip("a", "m", level="S", concepts=("Body",)), Clip("b", "m", level="EN")), Path())
    for report in (composition_report(clips, PAPER), group_report(clips, "movie", PAPER)):
        assert "printed" not in plain(report)


@pytest.mark.long
def test_an_annotator_called_all_has_a_row_beside_that_of_all_segments(segments):
    """A report by annotator begins with a row of all segments, which is called "all".

    The first of MObyGaze's two annotators is renamed to "all" too. Their row must stay what it was under
    their own name: the number of segments, and the p of the test that is made for each annotator.
    """
    first = segments.clips[0].annotator
    segments_renamed = segments.with_clips(
        replace(clip, annotator="all") if clip.annotator == first else clip for clip in segments
    )

    report = group_report(segments_renamed, "annotator", RAW)

    row_of_all_segments, row_of_annotator, *_ = report.data.to_dict("records")
    row_under_own_name = rows_of(group_report(segments, "annotator", RAW), "annotator")[first]
    assert row_of_all_segments["clips"] == len(segments)
    assert row_of_annotator["clips"] == row_under_own_name["clips"]
    assert row_of_annotator["p_holm"] == row_under_own_name["p_holm"]
