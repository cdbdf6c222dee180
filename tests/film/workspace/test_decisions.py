"""What people decide: what stands, is undone, conflicts, and is hidden from whom."""

import errno
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from obygaze_features import io
from obygaze_features.errors import ObygazeError
from obygaze_features.lines import encode_line
from obygaze_features.manifest import Level, builtin_codebook, import_spans
from obygaze_film import Timeline
from obygaze_film.cells import cells_of
from obygaze_film.errors import FilmError
from obygaze_film.judged_windows import judged_film
from obygaze_film.windows_to_judge import choose_next
from obygaze_film.workspace import pages
from obygaze_film.workspace.decisions import JUDGEMENTS, NOTES, PASSAGES, Decisions, copy_decisions
from obygaze_film.workspace.ledger import Ledger
from obygaze_film.workspace.ledger_lines import Header
from obygaze_film.workspace.open_film import OpenFilm, shown_judgements
from obygaze_film.workspace.pages import desk_page, next_window, shown_decisions, visible_decisions
from tests.files import rows_of
from tests.film.page.invented import invented_film
from tests.film.workspace.deciding import HEAD, ROW, judge, judge_blindly, levels, stands


def test_decisions_are_read_back_as_judgements_of_the_film(scored_tt1):
    folder, film, book = scored_tt1
    made = Decisions(folder, film, book)
    window = choose_next([film], 1, blind=True)[0]
    judge(made, window.start_s, window.end_s, "violent", " A  B ", concepts=["Gun"], place=1, n_planned=40)
    judge(made, 10, 20, who="=cmd()")
    made.keep("passage", 30, 41.5, "AB", level="violent", origin="passage 2")
    made.keep("note", 30, 41.5, "AB", note="why\nhere")
    imported = import_spans(
        [folder / JUDGEMENTS, folder / PASSAGES], folder, "judgements", codebook=book
    ).manifest
    by_span = {(clip.start_s, clip.end_s): clip for clip in imported}
    blind = by_span[window.start_s, window.end_s]
    assert (blind.level, blind.concepts, blind.annotator) == ("violent", ("Gun",), "A B")
    assert (blind.extras["seen_score"], blind.extras["place"]) == ("0", "1")
    assert by_span[10, 20].extras["judgement"] == "disagree"
    assert (blind.extras["draw"], by_span[10, 20].extras["draw"]) == ("random", "")
    assert by_span[10, 20].extras["seen_score"] == by_span[30, 41.5].extras["seen_score"] == "1"
    assert [row["note"] for row in rows_of(folder / NOTES)] == ["why here"]
    before = {path: path.stat().st_mtime_ns for path in folder.glob("*.csv")}
    again = Decisions(folder, film, book)
    assert stands(again) == stands(made)
    assert (again.notices, len([*folder.glob("ledger/*.jsonl")])) == ([], 1)
    assert before == {path: path.stat().st_mtime_ns for path in folder.glob("*.csv")}
    assert Timeline.read(folder).movie == "tt1"


def test_a_level_that_the_model_was_not_trained_on_disagrees_unless_it_is_in_no_task(scored_tt1):
    """As rates and the desk's head count it: of scores of HN and S, EN is not S, and NS is neither."""
    folder, film, book = scored_tt1
    made = Decisions(folder, film, replace(book, levels=(Level("none"), *book.levels)))
    for start, level in enumerate(("none", "calm", "unsure", "violent")):
        judge(made, start, start + 1, level)
    verdicts = ["disagree", "disagree", "unsure", "agree"]
    assert [row["judgement"] for row in rows_of(folder / JUDGEMENTS)] == verdicts
    assert [one["verdict"] for one in shown_decisions(OpenFilm(0, film, made), "AB")] == verdicts


def test_what_was_decided_goes_with_a_film_that_is_scored_anew(scored_tt1):
    folder, film, book = scored_tt1
    made = Decisions(folder, film, book)
    judge(made, 10, 20, "violent")
    judge_blindly(made, "calm", "violent")
    made.undo("AB")
    out = folder.parent / "again"
    film.write(out)
    copy_decisions(folder, out)
    again = Decisions(out, film, book)
    assert (stands(again), again.notices) == (stands(made), [])
    judge(again, 30, 40)  # and its owner goes on there
    assert len(levels(again)) == len(levels(made)) + 1
    assert [line.id for line in again.history(made.kept["judgement"][0].clip_id)] == []
    again.delete(made.kept["judgement"][0].clip_id, "AB")


def test_the_last_judgement_of_a_span_stays_and_each_takes_back_their_own(scored_tt1):
    made = Decisions(*scored_tt1)
    judge(made, 10, 20, "calm")
    judge(made, 10, 20, "violent")
    judge(made, 10, 20, "calm", "CD")
    assert levels(made) == [("AB", "violent"), ("CD", "calm")]
    assert [bool(made.undo("AB")) for _ in range(3)] == [True, True, False]
    assert levels(made) == [("CD", "calm")]
    assert made.undo("") is None
    assert levels(Decisions(*scored_tt1)) == [("CD", "calm")]
    assert not Decisions(*scored_tt1).undo("CD")  # of another sitting


def test_what_is_edited_and_deleted_is_undone_and_done_again_in_any_order(scored_tt1):
    """Random acts of one person: undo leads back to each state, redo forth again, nothing is left beside."""
    made, rng = Decisions(*scored_tt1), np.random.default_rng(0)

    def state():
        assert made.conflicts() == set()
        return sorted((clip.start_s, clip.end_s, clip.level) for kind in made.kept.values() for clip in kind)

    states = [state()]
    for number in range(24):
        ids = [clip.clip_id for clips in made.kept.values() for clip in clips]
        act, level = rng.integers(4), ["calm", "violent"][number % 2]
        if act == 0 and ids:
            made.delete(ids[int(rng.integers(len(ids)))], "AB")
        elif act == 1 and ids:
            start = float(rng.integers(90)) + number / 100
            changed_id = ids[int(rng.integers(len(ids)))]
            made.keep("passage", start, start + 3, "AB", level=level, changed_id=changed_id)
        elif act == 2:
            judge(made, 10.0 * int(rng.integers(3)), 50, level)  # often in place of one of that span
        else:
            made.keep("passage", 30 + number, 40 + number, "AB", level=level)
        states.append(state())
    for before in reversed(states[:-1]):
        assert made.undo("AB")
        assert state() == before
    assert made.undo("AB") is None
    for after in states[1:]:
        assert made.redo("AB")
        assert state() == after
    assert (made.redo("AB"), stands(Decisions(*scored_tt1))) == (None, stands(made))
    made.undo("AB")
    judge(made, 1, 2)
    assert made.redo("AB") is None  # something else was decided since


def test_only_a_standing_decision_of_ones_own_is_edited_or_deleted(scored_tt1):
    made = Decisions(*scored_tt1)
    name = judge(made, 10, 20)
    for who, other in (("CD", name), ("AB", "0" * 16 + "-1")):
        with pytest.raises(FilmError):
            made.delete(other, who)
        with pytest.raises(FilmError):
            made.keep("passage", 10, 20, who, level="calm", changed_id=other)
    again = Decisions(*scored_tt1)
    again.delete(name, "AB")  # of another sitting
    assert Decisions(*scored_tt1).notices == []
    made.refresh()
    with pytest.raises(FilmError, match="meanwhile"):
        made.delete(name, "AB")
    with pytest.raises(FilmError, match="shorter"):
        made.keep("passage", 10, 10.05, "AB", level="calm")


def test_a_judgement_in_sight_of_the_score_leaves_the_blind_one(scored_tt1):
    folder, film, book = scored_tt1
    made = Decisions(*scored_tt1)
    judge_blindly(made, "violent")
    judge(made, *made.windows[0], "calm")
    judge(made, *made.windows[0], "unsure")
    assert levels(made) == [("AB", "violent"), ("AB", "unsure")]
    clips = import_spans([folder / JUDGEMENTS], folder, "judgements", codebook=book).manifest
    assert [(clip.level, clip.extras["seen_score"]) for clip in clips] == [("violent", "0"), ("unsure", "1")]
    assert next_window(OpenFilm(0, film, made), "AB", 99)["done"] == 1


@pytest.mark.parametrize("place_given", [2, 10**6, -1])
def test_a_blind_judgement_is_of_the_window_at_its_place(scored_tt1, place_given):
    made = Decisions(*scored_tt1)
    with pytest.raises(ObygazeError, match="place"):
        judge(made, *made.windows[0], place=place_given, n_planned=40)
    with pytest.raises(ObygazeError, match="place"):
        judge(made, made.windows[0][0], made.windows[0][1] + 1, place=1, n_planned=40)
    assert made.kept["judgement"] == []


@pytest.mark.parametrize(("start", "end"), [(-0.1, 8), (8, 8), (9, 8), (100, 121.1)])
def test_a_decision_is_of_a_span_of_the_film(scored_tt1, start, end):
    """Players round the end of a film, by less than a second."""
    whole_s = scored_tt1[1].record.duration_s
    made = Decisions(*scored_tt1)
    judge(made, whole_s - 20, whole_s + 0.9)
    with pytest.raises(ObygazeError):
        judge(made, start, end if end < 100 else whole_s + 1.1)
    assert len(made.kept["judgement"]) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"start_s": "nan"}, {"start_s": "9"}, {"end_s": "1e9"}, {"end_s": ""}, {"level": "S"},
        {"concepts": "Body"}, {"annotator": ""}, {"annotator": "A\x1b[2J"}, {"seen_score": "2"},
        {"start_s": "9" * 400}, {"mine": "\x00"}, {"seen_score": "0", "place": "9" * 400},
        {"seen_score": "0", "place": "2"}, {"seen_score": "0"},
    ],
)  # fmt: skip
def test_nonsense_in_the_ledger_is_named_by_file_and_line_once_and_shown_nowhere(scored_tt1, wrong):
    folder, film, _ = scored_tt1
    (folder / "ledger").mkdir()
    path = folder / "ledger" / "0123456789abcdef.jsonl"
    entry = {"id": "0123456789abcdef-1", "clock": 1, "kind": "judgement", "row": ROW}
    bad = entry | {"id": "0123456789abcdef-2", "row": ROW | wrong}
    path.write_bytes(encode_line(entry) + encode_line(bad))
    made = Decisions(*scored_tt1)
    assert [str(path) in notice and "line 2" in notice for notice in made.notices[:1]] == [True]
    n_said = len(made.notices)
    judge(made, 10, 20)
    assert len(made.notices) == n_said
    opened = OpenFilm(0, film, made)
    assert next_window(opened, "AB", 99)["done"] == 0
    assert desk_page([opened], opened, "read", "en")
    assert len(shown_decisions(opened, "AB")) == 2 + ("place" in wrong or "0" in wrong.values())


def test_two_judgements_that_nobody_chose_between_are_shown_until_one_decides_again(scored_tt1):
    made, other = Decisions(*scored_tt1), Decisions(*scored_tt1)
    judge(made, 10, 20)
    other.ledger.read()  # both have seen it, and then not each other
    old = made.kept["judgement"][0].clip_id
    row = dict(made.ledger.lines[old].row)
    other.ledger.add("judgement", row | {"level": "violent"}, [old])
    made.ledger.add("judgement", row | {"level": "unsure"}, [old])
    film = OpenFilm(0, made.film, made)
    made.refresh()
    assert len(levels(made)) == len(made.conflicts()) == 2
    assert all(one["beside"] for one in shown_decisions(film, "AB"))
    assert any("beside" in notice for notice in made.notices)
    judge(made, 10, 20, "violent")
    assert (levels(made), made.conflicts()) == ([("AB", "violent")], set())


@pytest.mark.parametrize("is_reversed", [False, True], ids=["later in the ledger", "earlier in the ledger"])
def test_until_one_decides_again_the_later_by_its_time_counts_in_tables_and_shares(scored_tt1, is_reversed):
    made, other = Decisions(*scored_tt1), Decisions(*scored_tt1)
    judge(made, 10, 20)
    other.ledger.read()
    old = made.kept["judgement"][0].clip_id
    row = dict(made.ledger.lines[old].row)
    earlier = row | {"level": "violent", "judged_at": "2026-11-29T02:16:43+00:00"}
    later = row | {"level": "unsure", "judged_at": "2026-11-29T02:17:21+00:00"}
    first, second = (later, earlier) if is_reversed else (earlier, later)
    other.ledger.add("judgement", first, [old])
    made.ledger.add("judgement", second, [old])
    made.refresh()
    assert levels(made) == [("AB", "violent"), ("AB", "unsure")]
    assert [clip.level for clip in made.judgements()] == ["unsure"]
    assert [one["level"] for one in rows_of(made.folder / JUDGEMENTS)] == ["violent", "unsure"]


@pytest.mark.parametrize("kind", ["undo", "note", "judgement"])
def test_nobody_takes_back_or_replaces_what_another_decided_and_who_tries_is_said(scored_tt1, kind):
    made, other = Decisions(*scored_tt1), Decisions(*scored_tt1)
    name = judge(made, 10, 20)
    other.refresh()
    other.ledger.add(kind, ROW | {"annotator": "XY", "note": "hi", "start_s": "40", "end_s": "48"}, [name])
    made.refresh()
    assert ("AB", "calm") in levels(made)
    assert [("XY" in notice, "AB" in notice) for notice in made.notices] == [(True, True)]


def test_a_level_of_a_newer_codebook_replaces_nothing_here(scored_tt1):
    folder, film, book = scored_tt1
    newer = replace(book, levels=(*book.levels, Level("brutal")))
    name = judge(Decisions(folder, film, newer), 10, 20, "violent")
    Decisions(folder, film, newer).keep("judgement", 10, 20, "AB", level="brutal", changed_id=name)
    assert levels(Decisions(folder, film, newer)) == [("AB", "brutal")]
    here = Decisions(*scored_tt1)
    assert levels(here) == [("AB", "violent")]
    assert any("brutal" in notice for notice in here.notices)


def test_what_becomes_a_decision_of_another_kind_is_one_act(scored_tt1):
    """A judgement whose ends are moved becomes a passage; undo brings the judgement back."""
    made = Decisions(*scored_tt1)
    name = judge(made, 10, 20, "violent")
    made.keep("passage", 11, 20, "AB", level="violent", changed_id=name)
    passage = {"judgement": [], "passage": [("AB", 11.0, 20.0, "violent", "")], "note": [], "agreed": []}
    judgement = {"judgement": [("AB", 10.0, 20.0, "violent", "")], "passage": [], "note": [], "agreed": []}
    assert stands(made) == passage
    made.undo("AB")
    assert stands(made) == judgement
    made.redo("AB")
    assert stands(made) == stands(Decisions(*scored_tt1)) == passage


@pytest.mark.parametrize(
    "decision",
    [
        {"level": "S"},
        {"concepts": ["Body"]},
        {"start": 20.0},
        {"end": 1000.0},
        {"start": float("nan")},
        {"end": float("inf")},
        {"who": " "},
    ],
)
def test_what_is_no_judgement_of_this_film_is_refused(scored_tt1, decision):
    made = Decisions(*scored_tt1)
    with pytest.raises(ObygazeError):
        judge(made, **{"start": 10.0, "end": 20.0, **decision})
    with pytest.raises(ObygazeError):
        made.keep("note", 10, 20, "AB", note=" ")
    assert not (scored_tt1[0] / JUDGEMENTS).exists()
    assert not (scored_tt1[0] / "ledger").exists()


def test_a_full_disk_loses_no_decision_that_was_kept(scored_tt1, monkeypatch):
    folder = scored_tt1[0]
    made = Decisions(*scored_tt1)
    judge(made, 10, 20)
    before = (folder / JUDGEMENTS).read_bytes()

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(io, "write_all", full)  # of tables, and of new sittings
        judge(made, 20, 30)
    assert (folder / JUDGEMENTS).read_bytes() == before
    assert [JUDGEMENTS in notice and "ledger/" in notice for notice in made.notices] == [True]
    with monkeypatch.context() as disk:
        disk.setattr("obygaze_features.lines.write_all", full)
        with pytest.raises(OSError, match="No space"):
            judge(made, 30, 40)
        with pytest.raises(OSError, match="No space"):
            made.undo("AB")
    assert len(levels(made)) == 2
    assert made.undo("AB")  # the last that was kept
    judge(made, 40, 50)
    assert len(rows_of(folder / JUDGEMENTS)) == 2
    assert stands(Decisions(*scored_tt1)) == stands(made)


def test_a_film_that_was_scored_again_or_removed_is_said(scored_tt1):
    made = Decisions(*scored_tt1)
    scored_tt1[1].write(scored_tt1[0])
    with pytest.raises(ObygazeError, match="scored again"):
        judge(made, 10, 20)


def test_a_film_that_is_scored_again_keeps_its_ledger(scored_tt1):
    made = Decisions(*scored_tt1)
    judge(made, 10, 20)
    made.ledger.close()  # Windows replaces no folder that holds an open file
    scored_tt1[1].write(scored_tt1[0])
    assert levels(Decisions(*scored_tt1)) == [("AB", "calm")]


def test_judges_see_each_others_blind_judgements_when_their_own_are_finished(scored_tt1):
    film = OpenFilm(0, scored_tt1[1], Decisions(*scored_tt1))
    made = film.decisions
    n = len(made.windows)
    assert n > 11
    judge_blindly(made, *["violent"] * 10, who="CD", n=10)
    judge_blindly(made, *["calm"] * 9, who="AB", n=10)

    def seen_by(who):
        return {one["who"] for one in shown_decisions(film, who)}

    assert [seen_by(who) for who in ("AB", "CD", "")] == [{"AB"}, {"AB", "CD"}, set()]
    few = next_window(film, "AB", 10, tell=True)  # of their own 9 alone
    assert "sofar" not in few
    assert "9 windows" in few["few"]
    judge_blindly(made, "calm", who="AB", n=10)
    assert seen_by("AB") == {"AB", "CD"}
    share = next_window(film, "AB", 10)["share"]
    assert "AB and CD: 0 windows of 10 alike" in share
    judge_blindly(made, "calm", who="EF", n=n)  # who fixed more is not done at 10
    judge_blindly(made, *["calm"] * 10, who="EF", n=10 + 1)
    assert seen_by("EF") == {"EF"}


def test_the_interval_at_any_time_takes_windows_in_the_order_of_the_draw(scored_tt1, monkeypatch):
    film = OpenFilm(0, scored_tt1[1], Decisions(*scored_tt1))
    judge_blindly(film.decisions, *["violent", "calm"] * 5, n=10)
    intervals_asked = []

    def anytime_interval(cells, judged, is_positive):
        starts = [cells.spans[cell][0] for cell in judged]
        intervals_asked.append([*zip(starts, is_positive, strict=True)])
        return 0.0, 1.0

    monkeypatch.setattr(pages, "anytime_interval", anytime_interval)
    next_window(film, "AB", 10, tell=True)
    drawn_starts = [start for start, _ in film.decisions.windows[:10]]
    assert drawn_starts != sorted(drawn_starts)  # else the order of the film would do as well
    assert intervals_asked == [[*zip(drawn_starts, [1.0, 0.0] * 5, strict=True)]]


def test_windows_of_which_nobody_was_sure_are_no_part_of_the_share_at_any_time(scored_tt1, monkeypatch):
    film, taken = OpenFilm(0, scored_tt1[1], Decisions(*scored_tt1)), []
    n = len(film.decisions.windows)
    judge_blindly(film.decisions, "violent", "unsure", *["calm"] * (n - 3), n=n)
    cells = cells_of(scored_tt1[1])
    unsure_s, left_s = (cells.content_s[cells.index_of(*film.decisions.windows[index])] for index in (1, -1))

    def kept(cells, judged, y):
        taken.append((cells.content_s.sum(), cells.content_s[judged].sum(), len(y)))
        return 0.0, 1.0

    monkeypatch.setattr(pages, "anytime_interval", kept)
    so_far = next_window(film, "AB", n, tell=True)["sofar"]
    ((whole, of_judged, number),) = taken
    assert whole == pytest.approx(cells.content_s.sum() - unsure_s)
    assert (of_judged, number) == (pytest.approx(whole - left_s), n - 2)
    assert "1 window (" in so_far
    assert "earlier law" not in so_far


def test_of_windows_that_are_all_judged_the_share_is_counted_and_no_more_are_asked_for(scored_tt1):
    """A table that another program filled in fixes no number: no more are asked for than there are."""
    film = OpenFilm(0, scored_tt1[1], Decisions(*scored_tt1))
    n = len(film.decisions.windows)
    judge_blindly(film.decisions, *["violent", "calm"] * (n // 2), *["calm"] * (n % 2), n=10 * n)
    assert film.decisions.n_planned_by("AB") == film.decisions.n_planned_by("somebody else") == n
    for asked in (n, 10 * n):
        answer = next_window(film, "AB", asked, tell=True)
        assert (answer["done"], answer["fixed"], "window" in answer) == (n, n, False)
        assert "sofar" not in answer
        assert "no window is left" in answer["share"]


def test_a_list_that_was_filled_in_elsewhere_states_no_number_and_its_judge_is_asked_for_one(scored_tt1):
    """Nobody waits for more windows of theirs; what they go on judging they judge blindly still."""
    film = OpenFilm(0, scored_tt1[1], Decisions(*scored_tt1))
    made = film.decisions
    for number, (start_s, end_s) in enumerate(made.windows[:5], start=1):
        judge(made, start_s, end_s, "violent", "AB", place=number)
    judge_blindly(made, *["calm"] * 3, who="CD", n=10)
    assert (made.n_stated_by("AB"), made.n_planned_by("AB"), made.hides_others_from("AB")) == (0, 5, False)
    assert (made.n_stated_by("CD"), made.n_planned_by("CD"), made.hides_others_from("CD")) == (10, 10, True)
    assert "fixed" not in next_window(film, "AB", 0)
    assert next_window(film, "CD", 0)["fixed"] == 10
    judge_blindly(made, "violent", who="AB", n=7)
    assert (made.n_stated_by("AB"), made.hides_others_from("AB")) == (7, True)


def test_who_may_go_on_blindly_sees_others_judgements_of_the_windows_they_judged_alone(scored_tt1):
    """AB's list of five windows was imported: the other windows of CD's are hidden, as AB may judge them."""
    film = OpenFilm(0, scored_tt1[1], Decisions(*scored_tt1))
    made = film.decisions
    for number, (start_s, end_s) in enumerate(made.windows[:5], start=1):
        judge(made, start_s, end_s, "violent", "AB", place=number)
    judge_blindly(made, *["calm"] * 9, who="CD", n=9)
    seen = [one for one in shown_decisions(film, "AB") if one["who"] == "CD"]
    assert sorted(one["place"] for one in seen) == [1, 2, 3, 4, 5]
    assert visible_decisions(film, "AB")["hidden"] == 4
    assert len(shown_decisions(film, "CD")) == 14
    assert len(shown_judgements(film).clips) == 14  # CD judged last: who asks is CD
    assert made.places_seen_by_all() == {1, 2, 3, 4, 5}  # whoever has no name may be AB


def test_windows_are_judged_in_the_order_of_the_draw(scored_tt1):
    folder, timeline, book = scored_tt1
    film = OpenFilm(0, timeline, Decisions(folder, timeline, book))
    for number, (start, end) in enumerate(film.decisions.windows, start=1):
        answer = next_window(film, " AB ", 99)
        assert answer["done"] == number - 1
        assert answer["window"] == {"start": start, "end": end, "place": number}
        judge(film.decisions, start, end, place=number)
    assert "window" not in next_window(film, "AB", 99)
    assert min(film.decisions.windows)[0] == 0


@pytest.mark.parametrize(("name", "is_said"), [("obygaze12", False), ("mobygaze", True)])
def test_judgements_name_their_codebook_unless_it_is_the_first(tmp_path, name, is_said):
    film = invented_film(n_rows=60, duration_s=600.0)
    made = Decisions(tmp_path, film, builtin_codebook(name))
    judge(made, 0, 10, "S")
    (row,) = rows_of(tmp_path / JUDGEMENTS)
    assert ("codebook" in row) == is_said


def test_links_of_a_strangers_folder_lead_nowhere(scored_tt1, tmp_path):
    folder, other = scored_tt1[0], tmp_path / "elsewhere"
    other.mkdir()
    (folder / "ledger").symlink_to(other)
    made = Decisions(*scored_tt1)
    with pytest.raises(ObygazeError, match="link"):
        judge(made, 10, 20)
    (folder / "ledger").unlink()
    (folder / JUDGEMENTS).symlink_to(other / "secret.csv")
    (other / "secret.csv").write_text(HEAD, "utf-8")
    with pytest.raises(ObygazeError, match="link"):
        Decisions(*scored_tt1)
    judge(made, 10, 20)
    assert (other / "secret.csv").read_text("utf-8") == HEAD
    (folder / JUDGEMENTS).unlink()
    judge(made, 20, 30)
    assert len(rows_of(folder / JUDGEMENTS)) == 2
    assert [path.name for path in other.iterdir()] == ["secret.csv"]


def test_no_table_is_written_where_a_strangers_link_leads(scored_tt1, tmp_path):
    """A link to nothing is no table that could be read first, and none is made at its other end."""
    folder, other = scored_tt1[0], tmp_path / "elsewhere"
    other.mkdir()
    for name in (JUDGEMENTS, PASSAGES, NOTES):
        (folder / name).symlink_to(other / name)
    made = Decisions(*scored_tt1)
    judge(made, 10, 20)
    made.keep("note", 10, 20, "AB", note="here")
    assert [*other.iterdir()] == []
    assert [len(rows_of(folder / name)) for name in (JUDGEMENTS, NOTES)] == [1, 1]
    assert not (folder / JUDGEMENTS).is_symlink()


def test_a_table_that_became_a_link_to_itself_elsewhere_is_replaced_and_not_written_through(
    scored_tt1, tmp_path
):
    """Its file is the one that was written last, and only its name is a link now."""
    folder, other = scored_tt1[0], tmp_path / "elsewhere.csv"
    made = Decisions(*scored_tt1)
    judge(made, 10, 20)
    (folder / JUDGEMENTS).rename(other)
    (folder / JUDGEMENTS).symlink_to(other)
    before = other.read_bytes()
    judge(made, 20, 30)
    assert other.read_bytes() == before
    assert not (folder / JUDGEMENTS).is_symlink()
    assert len(rows_of(folder / JUDGEMENTS)) == 2


def test_of_many_judges_so_many_pairs_are_compared_and_it_is_said(scored_tt1, monkeypatch):
    monkeypatch.setattr("obygaze_features.lines.force_to_disk", lambda _: None)
    film = OpenFilm(0, scored_tt1[1], Decisions(*scored_tt1))
    made, other = film.decisions, Ledger(scored_tt1[0], print)
    for judge_number in range(16):
        for number, (start, end) in enumerate(made.windows[:10], start=1):
            row = ROW | {"start_s": f"{start:g}", "end_s": f"{end:g}", "annotator": f"J{judge_number}"}
            level = "violent" if (number + judge_number) % 3 else "calm"
            row |= {"seen_score": "0", "place": f"{number}", "windows": "10", "level": level}
            row |= {"law": made.draw.sampling}
            other.add("judgement", row)
    share = next_window(film, "J3", 10)["share"]
    assert "100 of 120 pairs" in share
    assert share.count(" alike as to violent (") == pages.MOST_NAMED
    assert "median" in share


def with_more_black(film):
    """The film as scored anew, with half a minute of it found to be black."""
    table = film.table.copy()
    is_black = (table["start_s"] >= 60) & (table["end_s"] <= 90)
    table.loc[is_black, "flags"] = "black"
    return replace(film, table=table)


def test_a_film_goes_on_by_its_draw_where_content_changed_since(scored_tt1):
    """Planted: 12 windows are judged, then some are found to be black; it is said, and nothing is lost."""
    folder, film, book = scored_tt1
    made = Decisions(folder, film, book)
    for number, (start, end) in enumerate(made.windows[:12], start=1):
        judge(made, start, end, "violent", place=number, n_planned=40)
    changed = with_more_black(film)
    again = Decisions(folder, changed, book)
    assert again.windows == made.windows
    assert [*again.blind_judgements()["AB"]] == [*range(1, 13)]
    assert len(again.notices) == 1
    assert "content" in again.notices[0]
    start, end = again.windows[12]
    judge(again, start, end, "calm", place=13, n_planned=40)
    assert len(judged_film(changed, again.judgements()).of("AB").by_cell) == 13


@pytest.mark.parametrize(
    "change", [{"movie": "another"}, {"seed": 3}, {"content": (1.0,)}, {"content": None}], ids=str
)
def test_a_draw_that_is_not_of_the_films_windows_counts_nowhere(scored_tt1, change):
    """Anybody may write a sitting; None stands for contents longer than the windows."""
    folder, film, book = scored_tt1
    made = Decisions(folder, film, book)
    draw = made.draw
    if change == {"content": None}:
        change = {"content": tuple(1e6 for _ in draw.content)}
    header = Header(draw=msgspec.structs.replace(draw, **change))
    other = Ledger(folder, print, lambda: header)
    start, end = made.windows[0]
    row = ROW | {"start_s": f"{start:g}", "end_s": f"{end:g}", "seen_score": "0", "place": "1"}
    other.add("judgement", row | {"law": draw.sampling, "seed": "0"})
    again = Decisions(folder, film, book)
    assert (again.draw, again.windows) == (draw, made.windows)
