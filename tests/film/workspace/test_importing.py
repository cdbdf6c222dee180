"""One's own decisions go out into a file, are changed there, and come back: what was changed and no more."""

import itertools
import re
import shutil
from dataclasses import replace
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from obygaze_features.manifest import Level, Subtitle, load_codebook, write_textgrid
from obygaze_film import read_films
from obygaze_film.errors import FilmError
from obygaze_film.exchange import FORMATS, export
from obygaze_film.workspace import ledger
from obygaze_film.workspace.decisions import Decisions, read_decided
from obygaze_film.workspace.importing import read_annotations
from obygaze_film.workspace.open_film import OpenFilm, shown_judgements_of
from tests.film.workspace.deciding import judge, judge_blindly, stands

BACK = ("eaf", "textgrid", "csv", "rttm", "vtt", "srt")
ALL_KINDS = tuple(FORMATS)
IN_FRAMES = ("fcpxml7", "markers", "edl")
WITH_IDS = ("eaf", "csv")


@pytest.fixture
def judged(scored_tt1):
    """Two people's decisions of all kinds, some of them on spans that overlap."""
    made = Decisions(*scored_tt1)
    judge_blindly(made, "calm", "violent", "unsure", "calm")
    judge_blindly(made, "calm", "calm", "violent", who="C D")
    judge(made, 40, 48.0625, "violent", concepts=["Gun", "Dim light"])
    judge(made, 44, 52, "calm", "C D")
    made.keep("passage", 42.123, 60.5, "AB", level="violent", note="a note")
    made.keep("note", 3, 4, "AB", note="a note alone")
    return made


def exported_with_people(scored_tt1, kind, **options):
    """Export the film with what people decided of it, as a file of a kind; return its path."""
    folder, timeline, _ = scored_tt1
    path = folder.parent / f"film{FORMATS[kind].suffix}"
    content = export(timeline, kind, people=read_decided(folder, timeline).decided, **options)
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return path


class Imported(NamedTuple):
    """How many annotations of one person in a file are new to the ledger, changed, unchanged, or left out."""

    new: int = 0
    changed: int = 0
    unchanged: int = 0
    left_out: int = 0


def import_file(decisions, path, is_blind=None, **options):
    """Take a file of annotations into the ledger; return what became of each annotator's annotations."""
    file = read_annotations(path, decisions.codebook, movie=decisions.film.movie, **options)
    imported = {}
    for account in decisions.take_in(file, is_blind=is_blind):
        imported[account.annotator] = Imported(
            new=account.n_new,
            changed=account.n_changed,
            unchanged=account.n_same,
            left_out=account.left_out.total(),
        )
    return imported


def n_sittings(scored_tt1):
    """Count the files of the ledger: each process that decides writes one of its own."""
    folder, _, _ = scored_tt1
    return len([*folder.glob("ledger/*.jsonl")])


@pytest.mark.parametrize("kind", ALL_KINDS)
@pytest.mark.parametrize("tiers", [(), ("people",)])
def test_what_nobody_changed_changes_nothing(judged, scored_tt1, kind, tiers):
    before, sittings = stands(judged), n_sittings(scored_tt1)
    assert import_file(judged, exported_with_people(scored_tt1, kind, tiers=tiers)) == {
        "AB": Imported(unchanged=6),
        "C D": Imported(unchanged=4),
    }
    assert stands(judged) == before
    assert n_sittings(scored_tt1) == sittings
    assert stands(Decisions(*scored_tt1)) == before


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_into_an_empty_ledger_comes_what_went_out(judged, scored_tt1, kind, tmp_path):
    """The round trip of one's own judgements: all of them, with who and how, to the frame where it counts."""
    path = exported_with_people(scored_tt1, kind, tiers=["people"])
    empty = tmp_path / "elsewhere" / "tt1"
    scored_tt1[1].write(empty)
    made = Decisions(empty, *scored_tt1[1:])
    assert import_file(made, path) == {"AB": Imported(new=6), "C D": Imported(new=4)}

    def labels(decisions):
        kept = [clip for kind in ("judgement", "passage") for clip in decisions.kept[kind]]
        return sorted(
            (clip.annotator, clip.start_s, clip.end_s, clip.level, clip.concepts, clip.extras["seen_score"])
            for clip in kept
        )

    slack_s = 0.021 if kind in IN_FRAMES else 0.001
    for (who, start, end, *says), (own, first, last, *said) in zip(labels(made), labels(judged), strict=True):
        assert (who, says) == (own, said)
        assert (start, end) == (pytest.approx(first, abs=slack_s), pytest.approx(last, abs=slack_s))
    assert {who: len(places) for who, places in made.blind_judgements().items()} == {"AB": 4, "C D": 3}


def changed(path, kind):
    """Give the span of 40 to 48.0625 s another level, and the passage from 42.123 s no concept more."""
    text = path.read_text(encoding="utf-8")
    if kind == "eaf":
        (slot,) = re.findall(r'"(ts\d+)" TIME_VALUE="40000"', text)[:1]
        text = re.sub(rf'({slot}" [^>]*>\s*<ANNOTATION_VALUE>)violent', r"\1calm", text)
    elif kind == "textgrid":
        text = text.replace('xmin = 40\n            xmax = 48.0625\n            text = "violent"',
                            'xmin = 40\n            xmax = 48.0625\n            text = "calm"')  # fmt: skip
    elif kind == "csv":
        text = re.sub(r"^([^\n]*,40\.0,48\.0625,.*?),violent,", r"\1,calm,", text, flags=re.MULTILINE)
    else:
        text = text.replace("= violent; Gun; Dim light", "= calm; Gun; Dim light")
        text = text.replace("=_violent;_Gun;_Dim_light", "=_calm;_Gun;_Dim_light")
    path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("kind", BACK)
def test_what_was_changed_replaces_ones_own_and_nothing_else_moves(judged, scored_tt1, kind):
    before = stands(judged)
    path = exported_with_people(scored_tt1, kind)
    changed(path, kind)
    assert import_file(judged, path) == {"AB": Imported(changed=1, unchanged=5), "C D": Imported(unchanged=4)}
    after = stands(judged)
    assert ("AB", 40.0, 48.0625, "calm", "") in after["judgement"]
    assert ("AB", 40.0, 48.0625, "violent", "") not in after["judgement"]
    assert len(after["judgement"]) == len(before["judgement"])
    assert [after[kind] for kind in ("passage", "note", "agreed")] == [
        before[kind] for kind in ("passage", "note", "agreed")
    ]
    (own,) = [clip for clip in judged.kept["judgement"] if clip.start_s == 40]
    assert own.concepts == ("Gun", "Dim light")
    assert len(judged.history(own.clip_id)) == 1
    assert judged.conflicts() == set()
    sittings = n_sittings(scored_tt1)
    assert import_file(judged, path)["AB"] == Imported(unchanged=6)  # the same file twice
    assert (stands(judged), n_sittings(scored_tt1)) == (after, sittings)
    assert stands(Decisions(*scored_tt1)) == after


@pytest.mark.parametrize("kind", WITH_IDS)
def test_a_file_that_is_changed_again_replaces_what_came_of_it_first(judged, scored_tt1, kind):
    """Who goes on in the document that was written once never decides beside themselves."""
    path = exported_with_people(scored_tt1, kind)
    changed(path, kind)
    import_file(judged, path)
    text = path.read_text(encoding="utf-8")
    if kind == "eaf":
        path.write_text(moved(text, 48062, 400), encoding="utf-8")
    else:
        path.write_text(text.replace("40.0,48.0625", "40.0,48.462"), encoding="utf-8")
    assert import_file(judged, path)["AB"] == Imported(changed=1, unchanged=5)
    assert ("AB", 40.0, 48.462, "calm", "") in stands(judged)["judgement"]
    assert judged.conflicts() == set()
    assert stands(Decisions(*scored_tt1)) == stands(judged)


def moved(text, start_ms, by_ms):
    return re.sub(rf'TIME_VALUE="{start_ms}"', f'TIME_VALUE="{start_ms + by_ms}"', text, count=1)


def test_a_span_whose_ends_are_moved_in_elan_is_the_same_decision(judged, scored_tt1):
    path = exported_with_people(scored_tt1, "eaf")
    path.write_text(moved(path.read_text(encoding="utf-8"), 42123, -500), encoding="utf-8")
    assert import_file(judged, path)["AB"] == Imported(changed=1, unchanged=5)
    assert stands(judged)["passage"] == [("AB", 41.623, 60.5, "violent", "a note")]


def test_programs_that_give_other_ids_move_nothing(judged, scored_tt1):
    """Of an annotation that shows another span than its id's decision the times tell which it shows."""
    path = exported_with_people(scored_tt1, "eaf")
    text = path.read_text(encoding="utf-8")
    (decisions,) = re.findall(r'NAME="decisions">([^<]*)', text)
    names = [part.partition("=") for part in decisions.split()]
    pairs = zip(names, [*names[1:], names[0]], strict=True)
    turned = " ".join(f"{own}={name}" for (own, _, _), (_, _, name) in pairs)
    path.write_text(text.replace(decisions, turned), encoding="utf-8")
    before = stands(judged)
    import_file(judged, path)
    assert stands(judged) == before


def test_what_was_judged_again_since_stands(judged, scored_tt1):
    """A file of Monday does not take back what was decided on Tuesday; what it changes stands beside it."""
    path = exported_with_people(scored_tt1, "eaf")
    judge(judged, 40, 48.0625, "unsure")
    after = stands(judged)
    assert import_file(judged, path)["AB"] == Imported(unchanged=6)
    assert stands(judged) == after
    changed(path, "eaf")
    import_file(judged, path)
    assert len(judged.conflicts()) == 2


def test_a_blind_judgement_that_is_changed_beside_the_scores_is_blind_no_more(judged, scored_tt1):
    start_s, _ = judged.windows[0]
    blind = judged.blind_judgements()["AB"][1]
    for tiers, is_blind in (((), False), (("people",), True)):
        path = exported_with_people(scored_tt1, "csv", tiers=tiers)
        text = path.read_text(encoding="utf-8")
        line = next(line for line in text.splitlines() if blind.clip_id in line)
        path.write_text(text.replace(line, line.replace(",calm,", ",violent,")), encoding="utf-8")
        made = Decisions(*scored_tt1)
        import_file(made, path)
        at = [clip for clip in made.kept["judgement"] if (clip.annotator, clip.start_s) == ("AB", start_s)]
        levels = {clip.extras["seen_score"]: clip.level for clip in at}
        assert levels == ({"0": "violent", "1": "violent"} if is_blind else {"0": "calm", "1": "violent"})
        assert made.blind_judgements()["AB"][1].level == ("violent" if is_blind else "calm")


def test_a_window_of_the_draw_keeps_its_times(judged, scored_tt1):
    path = exported_with_people(scored_tt1, "eaf", tiers=["people"])
    start_ms = round(1000 * judged.windows[3][0])
    path.write_text(moved(path.read_text(encoding="utf-8"), start_ms, 300), encoding="utf-8")
    before = stands(judged)
    assert import_file(judged, path)["AB"] == Imported(unchanged=5, left_out=1)
    assert stands(judged) == before


TABLE = "movie,start_s,end_s,level,annotator\ntt1,20,28,violent,EF\ntt1,70,80.5,calm,EF\n"


@pytest.mark.parametrize(("is_blind", "seen"), [(True, "0"), (False, "1")])
def test_annotations_from_elsewhere_are_blind_or_in_sight_as_declared(judged, scored_tt1, is_blind, seen):
    path = scored_tt1[0].parent / "own.csv"
    start_s, end_s = judged.windows[5]
    path.write_text(f"{TABLE}tt1,{start_s},{end_s},calm,EF\n", encoding="utf-8")
    with pytest.raises(FilmError, match="--blind"):
        import_file(judged, path)
    assert import_file(judged, path, is_blind=is_blind) == {"EF": Imported(new=3)}
    own = {
        kind: [clip.extras["seen_score"] for clip in clips if clip.annotator == "EF"]
        for kind, clips in judged.kept.items()
    }
    assert own["judgement"] + own["passage"] == [seen] * 3
    assert len(own["judgement"]) == (1 if is_blind else 0)  # a window of the draw
    (sitting,) = [line for line in judged.ledger.lines.values() if line.row.get("kind") == "import"]
    assert (sitting.row["annotator"], sitting.row["file"]) == ("EF", "own.csv")
    assert {judged.definition_of(line) for line in judged.lines.values()} == {judged.codebook.definition()}


def test_a_document_without_scores_is_blind_only_if_somebody_says_so(judged, scored_tt1):
    path = exported_with_people(scored_tt1, "eaf", tiers=["people"])
    path.write_text(path.read_text(encoding="utf-8").replace(", in sight", ""), encoding="utf-8")
    with pytest.raises(FilmError, match="--blind"):
        import_file(judged, path)
    beside = exported_with_people(scored_tt1, "eaf")
    beside.write_text(beside.read_text(encoding="utf-8").replace(", in sight", ""), encoding="utf-8")
    with pytest.raises(FilmError, match="--in-sight"):
        import_file(judged, beside, is_blind=True)


def test_tiers_of_others_are_labels_by_their_roles_alone(judged, scored_tt1):
    """A tier of words that holds the name of a level once is none; the person may say that it is one."""
    path = scored_tt1[0].parent / "words.TextGrid"
    said = [Subtitle(0, 4, "he is calm"), Subtitle(4, 9, "calm"), Subtitle(9, 12, "violent waves")]
    path.write_text(write_textgrid({"words": said}, 12), encoding="utf-8")
    before = stands(judged)
    assert import_file(judged, path, is_blind=True, annotator="EF") == {"EF": Imported(left_out=3)}
    assert stands(judged) == before


@pytest.mark.usefixtures("judged")
def test_a_changed_definition_goes_with_the_file(scored_tt1):
    path = exported_with_people(scored_tt1, "eaf")
    changed(path, "eaf")
    book = replace(scored_tt1[2], levels=(Level("calm", means="now otherwise"), *scored_tt1[2].levels[1:]))
    made = Decisions(*scored_tt1[:2], book)
    import_file(made, path)
    own = [line for line in made.lines.values() if line.annotator == "AB"]
    (line,) = [line for line in own if line.row["start_s"] == "40"]
    assert line.row["level"] == "calm"
    assert made.definition_of(line) == scored_tt1[2].definition()  # it was judged under the words of the file
    assert not made.is_current(line.id)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    kind=st.sampled_from(BACK),
    note=st.text(st.characters(exclude_categories=("C", "Zl", "Zp")), max_size=40),
    name=st.text(st.characters(categories=("L", "N", "P")), min_size=1, max_size=12),
)
def test_no_name_and_no_note_keeps_anything_from_coming_back(scored_tt1, kind, note, name):
    folder = scored_tt1[0]
    shutil.rmtree(folder / "ledger", ignore_errors=True)
    for path in folder.glob("*s.csv"):
        if path.name in {"judgements.csv", "passages.csv", "notes.csv"}:
            path.unlink()
    made = Decisions(*scored_tt1)
    judge(made, 40, 48, "violent", name, note=note)
    before = stands(made)
    assert [*import_file(made, exported_with_people(scored_tt1, kind)).values()] == [Imported(unchanged=1)]
    assert stands(made) == before


def test_one_table_of_two_films_gives_each_film_decisions_with_ids_of_its_own(copied, tmp_path):
    """The desk joins the decisions of all its films, and refuses two with one id."""
    scored, codebook_path = copied
    table = tmp_path / "judged.csv"
    rows = [f"film-{n},tt{n},,0,8,calm,,AB,1\n" for n in (1, 2)]
    table.write_text(
        "clip_id,movie,video,start_s,end_s,level,concepts,annotator,seen_score\n" + "".join(rows)
    )
    book = load_codebook(codebook_path)
    ids = set()
    for film in read_films([scored / "tt1", scored / "tt2"]):
        decisions = Decisions(scored / film.record.movie, film, book)
        decisions.take_in(read_annotations(table, book).of_film(film.record.movie))
        (decided,) = itertools.chain(*decisions.kept.values())
        ids.add(decided.clip_id)
    assert len(ids) == 2


def test_films_whose_ledgers_number_their_decisions_alike_are_open_together(
    scored_tt1, films, tmp_path, monkeypatch
):
    """An earlier version wrote such ledgers when it imported one file of several films."""
    monkeypatch.setattr(ledger, "token_hex", lambda _n_bytes: "b4eb22ea28378d85")
    folder_tt1, timeline_tt1, book = scored_tt1
    folder_tt2 = shutil.copytree(films / "scored" / "tt2", tmp_path / "tt2")
    timeline_tt2 = read_films([folder_tt2])[0]
    opened = []
    for folder, timeline in ((folder_tt1, timeline_tt1), (folder_tt2, timeline_tt2)):
        decisions = Decisions(folder, timeline, book)
        judge(decisions, 0, 8, "calm")
        opened.append(OpenFilm(len(opened), timeline, decisions))
    assert [*opened[0].decisions.lines] == [*opened[1].decisions.lines]
    judged = shown_judgements_of(opened, book).judged
    assert [(clip.movie, clip.level) for clip in judged] == [("tt1", "calm"), ("tt2", "calm")]
