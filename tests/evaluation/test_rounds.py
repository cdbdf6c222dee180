"""A round that is under way: what is done, and an annotator whose calls change is told from films that do."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import linregress, t

from obygaze_features.manifest import (
    Clip,
    EafTier,
    Manifest,
    assign,
    builtin_codebook,
    eaf_document,
    import_spans,
    read_manifest,
    write_documents,
    write_manifest,
)
from obygaze_models.errors import ProtocolError
from obygaze_models.evaluation.rounds import drifts, round_progress
from tests.command import obygaze


def planned(folder, films=10, per_film=60, names=("AB", "CD", "EF"), each=3, calibration=0):
    clips = [
        Clip(f"f{film:02}-{k:02}", f"f{film:02}", "", 5.0 * k, 5.0 * k + 5)
        for film in range(films)
        for k in range(per_film)
    ]
    return assign(Manifest(tuple(clips), folder), names, each, calibration=calibration)


def called(made, share, seed=0):
    """Call clips S at a share that depends on annotator, film and order; a clip is as easy for all."""
    rng = np.random.default_rng(seed)
    latent = {clip.clip_id: rng.random() for clip in made}
    return made.with_clips(
        replace(clip, level="S" if latent[clip.clip_id] < share(clip) else "EN", extras={}) for clip in made
    )


def test_of_a_film_judged_in_part_the_clips_are_counted(tmp_path):
    made = planned(tmp_path, films=4)
    some = [clip for clip in called(made, lambda _: 0.5) if clip.annotator == "AB"][:90]
    found = round_progress(made, made.with_clips(some))
    assert (len(found["AB"].done), found["AB"].clips_done, found["CD"].clips_done) == (2, 90, 0)


@pytest.mark.parametrize(
    ("other", "message"), [("3", "'f00' of 'AB' has two numbers"), ("", "is of two films")]
)
def test_numbers_that_are_no_order_are_refused(tmp_path, other, message):
    made = planned(tmp_path, films=4)
    films = [clip.movie for clip in made if clip.annotator == "AB" and clip.extras["order"] == "1"]

    def renumbered(clip):
        is_first, is_film = clip.clip_id == "f00-00", clip.movie == films[0]
        order = "9" if other and is_first else clip.extras["order"] if other or not is_film else "2"
        return replace(clip, extras={**clip.extras, "order": order}) if clip.annotator == "AB" else clip

    with pytest.raises(ProtocolError, match=message):
        round_progress(made.with_clips(map(renumbered, made)), made)


def test_numbers_count_as_data_frames_write_them(tmp_path):
    made = planned(tmp_path, films=4)
    written = (replace(c, extras={**c.extras, "order": c.extras["order"] + ".0"}) for c in made)
    found = round_progress(made.with_clips(written), made)
    assert {name: each.films for name, each in found.items()} == {
        name: each.films for name, each in round_progress(made, made).items()
    }


def test_an_annotator_or_film_in_two_spellings_is_refused(tmp_path, capsys):
    made = planned(tmp_path, films=2, per_film=2)
    write_manifest(made, tmp_path / "round.csv")
    for change in ({"annotator": "ab"}, {"movie": "F00"}):
        old = {"annotator": "AB", "movie": "f00"}
        hit = [clip for clip in made if all(getattr(clip, name) == old[name] for name in change)]
        write_manifest(made.with_clips(replace(c, level="S", **change) for c in hit), tmp_path / "done.csv")
        assert obygaze("manifest", "progress", tmp_path / "round.csv", tmp_path / "done.csv") == 1
        assert "are one name: spell both alike" in capsys.readouterr().err


def test_the_slope_is_that_of_least_squares_and_t_where_films_differ():
    rng = np.random.default_rng(0)
    films = [rng.normal(0.1 * k + 3 * rng.normal(), 1, 40) for k in range(8)]
    (found,) = drifts([(films, range(8))])
    line = linregress(range(8), [values.mean() for values in films])
    assert found.value == pytest.approx(7 * line.slope)
    assert found.high - found.value == pytest.approx(7 * t.ppf(0.975, 6) * line.stderr)
    few, none = drifts([(films[:3], range(3)), ([], [])])
    assert (few.films, none.films) == (3, 0)
    assert np.isnan([few.value, none.high]).all()
    alike = drifts([([np.zeros(9)] * 5, range(5))])[0]
    assert not alike.is_found


def test_an_annotator_who_drifts_is_found_and_others_are_not_whatever_the_films_show(tmp_path):
    made = planned(tmp_path)
    rank = {clip.clip_id: int(clip.movie[1:]) / 9 for clip in made}

    def share(clip):
        order = int(clip.extras["order"]) - 1
        return 0.2 + 0.3 * rank[clip.clip_id] + (0.3 * order / 9 if clip.annotator == "AB" else 0)

    found = round_progress(made, called(made, share), "en_s")
    assert found["AB"].against.is_found
    assert found["AB"].against.value == pytest.approx(0.3, abs=0.06)
    same = round_progress(made, called(made, lambda clip: 0.2 + 0.3 * rank[clip.clip_id]), "en_s")
    assert not any(each.against.is_found for each in same.values())


def test_a_round_in_elan_from_the_plan_to_progress(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    made = planned(tmp_path, films=6, per_film=20, names=("AB", "CD", "EF"), each=2, calibration=1)
    write_manifest(made.with_clips({c.clip_id: replace(c, annotator="", extras={}) for c in made}.values()),
                   "clips.csv")  # fmt: skip
    people = [word for name in ("AB", "CD", "EF") for word in ("--annotator", name)]
    command = [
        "manifest",
        "assign",
        "clips.csv",
        *people,
        "--each",
        2,
        "--calibration",
        1,
        "--out",
        "round.csv",
    ]
    assert obygaze(*command) == 0
    made = read_manifest("round.csv")
    assert obygaze("codebook", "template", "round.csv", "f00.mp4", "--annotator", "AB", "--out", "blank") == 0
    book, documents = builtin_codebook("obygaze12"), {}
    spans = [(0.0, 12.0, "S"), (12.0, 40.0, "HN"), (50.0, 62.0, "S")]
    for name in ("AB", "CD"):
        films = sorted({clip.movie for clip in made if clip.annotator == name})
        for film in films[:-1] if name == "CD" else films:
            tier = EafTier(f"human: level@{name}", "level", spans, annotator=name)
            words = {"levels": ("levels", book.level_names)}
            documents[f"{film}-{name}"] = eaf_document([tier], {"codebook": book.name, "movie": film}, words)
    paths = write_documents(documents, tmp_path / "done", force=False)
    imported = import_spans(paths, tmp_path)
    write_manifest(imported.manifest, "done.csv")
    capsys.readouterr()
    assert obygaze("manifest", "progress", "round.csv", "done.csv") == 0
    said = capsys.readouterr().out
    found = round_progress(made, imported.manifest)
    assert found["AB"].to_do == []
    assert len(found["CD"].to_do) == 1
    assert found["EF"].done == []
    assert f"CD: to do {found['CD'].to_do[0]}" in said
    assert found["AB"].clips_done == found["AB"].clips
    guest, other = (
        replace(imported.manifest.clips[0], **new)
        for new in ({"annotator": "GH"}, {"clip_id": "x", "movie": "f9"})
    )
    write_manifest(imported.manifest.with_clips([*imported.manifest, guest, other]), "half.csv")
    assert obygaze("manifest", "progress", "round.csv", "half.csv") == 0
    said = capsys.readouterr().err
    assert "GH (1)" in said
    assert "f9 (1)" in said
    with pytest.raises(ProtocolError, match="order"):
        round_progress(imported.manifest, imported.manifest)
