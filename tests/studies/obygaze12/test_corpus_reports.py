"""Reports of annotations: by column, by threshold, by sets, with what the paper prints beside."""

from dataclasses import replace
from pathlib import Path

from obygaze_features.manifest import Clip, LabelPolicy, Manifest, windows
from obygaze_features.manifest.projection import sweep
from obygaze_models.report import plain
from obygaze_studies.obygaze12.composition import composition_report, group_report, sweep_report

PAPER = LabelPolicy.PAPER
RAW = LabelPolicy.RAW


def rows_of(report, key):
    return report.data.set_index(key).to_dict(orient="index")


def test_obygaze12_by_genre_and_year_is_table_3_counted(obygaze12):
    by_genre = group_report(obygaze12, "genres", PAPER)
    genres = rows_of(by_genre, "genres")
    assert any("in several groups" in note for note in by_genre.notes)
    films = {name: row["movies"] for name, row in genres.items()}
    assert films == {
        "all": 12, "comedy": 8, "drama": 10, "family": 1, "mystery": 2, "romantic": 7, "thriller": 1,
    }  # fmt: skip
    assert genres["all"]["clips"] == 1914
    years = rows_of(group_report(obygaze12, "year", PAPER), "year")
    assert sum(row["clips"] for year, row in years.items() if year != "all") == 1914
    assert (years["2009"]["movies"], years["2000"]["S"]) == (2, 0)


def test_the_sweep_of_mobygaze_moves_as_app_7_2_says_but_for_hn(segments):
    """Printed of ObyGaze12's own clips: EN +76, HN +68, NS -42, S -103; here onto windows of 46 s."""
    projected = sweep(segments, windows(segments, 46), (0.1, 0.2, 0.3, 0.4))
    report = sweep_report(projected, "windows of 46 s", RAW)
    clips = report.data.pivot_table(index="threshold", columns="level", values="clips")
    assert clips["EN"].tolist() == [1061, 1204, 1374, 1552]
    assert clips["HN"].tolist() == [852, 850, 838, 792]
    assert clips["NS"].tolist() == [207, 204, 187, 182]
    assert clips["S"].tolist() == [1225, 1087, 946, 819]
    assert report.blocks[0].rows[-1] == ("0.1 to 0.4", "+491", "-60", "-25", "-406", "")
    assert any("[+76, +68, -42, -103]" in note for note in report.notes)


def test_a_corpus_that_is_not_the_papers_has_nothing_printed_beside():
    clips = Manifest((Clip("a", "m", level="S", concepts=("Body",)), Clip("b", "m", level="EN")), Path())
    for report in (composition_report(clips, PAPER), group_report(clips, "movie", PAPER)):
        assert "printed" not in plain(report)


def test_a_group_called_all_is_a_group_and_one_threshold_is_a_sweep(segments):
    first = segments.clips[0].annotator
    renamed = segments.with_clips(
        replace(clip, annotator="all") if clip.annotator == first else clip for clip in segments
    )
    whole, all_, *_ = group_report(renamed, "annotator", RAW).data.to_dict("records")
    of_first = group_report(segments, "annotator", RAW).data.set_index("annotator").loc[first]
    assert (whole["clips"], all_["clips"]) == (len(segments), of_first["clips"])
    assert all_["p_holm"] == of_first["p_holm"]
    alone = sweep_report(sweep(segments, windows(segments, 46), [0.2]), "windows of 46 s", RAW)
    assert alone.blocks[0].rows[-1] == ("0.2 to 0.2", "+0", "+0", "+0", "+0", "")
