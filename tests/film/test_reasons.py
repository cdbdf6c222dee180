"""What is named as seen is seen, what is absent stands apart with its sign, what is undefined stays so."""

import csv
import io
import re
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from msgspec.structs import replace as changed

from obygaze_film.claims import Words, phrases
from obygaze_film.claims.kinds import ClaimTime
from obygaze_film.claims.of_film import passage as claim_of
from obygaze_film.claims.of_film import passage_reasons
from obygaze_film.exchange import KINDS, collect, export, write_export
from obygaze_film.page import charts, film_page
from obygaze_film.schema import durations, has_flag
from obygaze_film.scored_files import files_of
from obygaze_film.segments import Reason as SegmentReason
from tests.film.page.invented import CONCEPTS, invented_film, with_model
from tests.film.page.test_page import drawn, text_of
from tests.film.saying import data_of, percentages_of

SMALL = {"n_rows": 60, "duration_s": 600.0}


@pytest.fixture(scope="module")
def film():
    """A film whose best segment is decided by Activity and Look, which are absent; only Body is seen."""
    film = invented_film(traced=True, **SMALL)
    best = film.segments().iloc[0]
    table = film.table.copy()
    inside = (table["start_s"] >= best["start_s"]) & (table["end_s"] <= best["end_s"])
    for name, *_ in CONCEPTS:
        table.loc[inside, [f"{name}_p", f"{name}_contribution"]] = (0.3, 0.01)
    table.loc[inside, ["Body_p", "Body_contribution"]] = (0.95, 0.5)
    table.loc[inside, ["Activity_p", "Activity_contribution"]] = (0.01, 5.0)
    table.loc[inside, ["Look_p", "Look_contribution"]] = (0.02, -4.0)
    return replace(film, table=table)


@pytest.fixture(scope="module")
def best(film):
    return film.segments().iloc[0]


def test_a_segment_keeps_all_its_reasons_with_their_sign_and_says_which_are_seen(film, best):
    assert best["present"] == "Body"
    assert best["concepts"] == "Activity;Look;Body"
    written = pd.read_csv(io.BytesIO(files_of(film)["segments.csv"]))
    assert written.loc[0, "present"] == "Body"
    assert written.loc[0, "concepts_p"] == "0.0100;0.0200;0.9500"
    assert written.loc[0, "contributions"] == "5.0000;-4.0000;0.5000"


def test_numbers_of_reasons_are_printed_from_unrounded_means(film):
    """.78496 is 0.78; rounded to four decimals first, as in the file, it would be 0.79."""
    best = film.segments().iloc[0]
    table = film.table.copy()
    inside = (table["start_s"] >= best["start_s"]) & (table["end_s"] <= best["end_s"])
    table.loc[inside, "Activity_p"] = 0.78496
    mended = replace(film, table=table)
    (reason,) = (
        one for one in claim_of(mended.model(), mended.segments().iloc[0]).reasons if one.what == "Activity"
    )
    assert phrases.reason_p(reason, Words("en")) == "0.78"
    written = pd.read_csv(io.BytesIO(files_of(mended)["segments.csv"]))
    assert "0.7850" in written.loc[0, "concepts_p"].split(";")


def test_reasons_are_named_in_the_order_of_what_each_changes(film):
    """Look weighs more in the logit, and Body moves the probability more: Body is named first."""
    time = ClaimTime("span", 8.0, 0.0, 8.0)
    found = [
        SegmentReason(name, 0.1, contribution, False, 0.4, "less", change)
        for name, contribution, change in (("Look", -0.135, -0.0113), ("Body", -0.129, -0.0122))
    ]
    claims = passage_reasons(film.model(), found, time)
    assert [claim.what for claim in claims] == ["Look", "Body"]
    sentence = phrases.reasons_sentence(claims, Words("en"))
    assert sentence.index("Body") < sentence.index("Look")
    shortened = phrases.reasons_sentence(claims, Words("en"), most=1)
    assert "Body" in shortened
    assert "Look" not in shortened


def test_no_export_names_an_absent_concept(film, best, kind):
    (span,) = (one for one in collect(film, kind, tiers=["segments"]).tiers[0].spans if one.rank == 1)
    assert span.present == ("Body",)
    # Of concepts that are found better than chance: those that are not are named in the notes.
    concepts = [changed(one, low=one.chance + 0.01) for one in film.model().concepts]
    text = export(with_model(film, concepts=concepts), kind, tiers=["segments"])
    if kind == "csv":
        rows = {row["start_s"]: row for row in csv.DictReader(io.StringIO(text))}
        row = rows[str(best["start_s"])]
        assert row["contributions"] == "Activity +5.0000; Look -4.0000; Body +0.5000"
        assert row["present"] == "Body"
        text = " ".join(one["text"] for one in rows.values())
    assert ("Body" in text) == (kind != "rttm")  # its labels are names of tiers alone
    others = {name for row in film.segments(top=0)["present"][1:] for name in row.split(";")}
    for name in {"Activity", "Look"} - others:
        assert name not in text


def test_the_tier_of_a_concept_has_no_span_where_it_is_absent(film, best):
    for tier in collect(film, "eaf", tiers=["concepts"]).tiers:
        inside = [
            span for span in tier.spans if span.start_s < best["end_s"] and span.end_s > best["start_s"]
        ]
        assert bool(inside) == (tier.name == "obygaze: Body")


def test_the_page_names_what_is_absent_apart_and_draws_no_frames_of_it(film):
    passages = data_of(film_page([film]))["passages"]
    (card,) = (one for one in passages if one["start"] == film.segments().iloc[0]["start_s"])
    words = card["sentence"]
    parted = Words("en").say("why_parted", p="0.01", usual="0.17")
    assert (
        f"For it: more Activity than usual ({parted}); more Body than usual (0.95, 0.17 at its usual value)"
        in words
    )
    against = words[words.index("Against it: more Look than usual") :]
    assert Words("en")["why_near_chance"] in against
    said = {part["name"]: (part["p"], part["value"]) for part in card["parts"]}
    assert said["Activity"] == ("not seen, 0.01", "+5.00")
    of_frames = {row["name"] for row in card["frames"]["rows"]}
    assert "Body" in of_frames
    assert not of_frames & {"Activity", "Look"}


def test_the_page_reads_out_no_concept_below_its_threshold(film):
    """The script names a concept where its rounded percentage reaches the one in the data."""
    rows = film.rows()
    for concept in data_of(film_page([film]))["rows"]["concepts"]:
        p = rows[f"{concept['name']}_p"].to_numpy()
        named = np.array(percentages_of(concept["p"])) >= concept["seen"]
        assert (p[named] >= 0.5).all()
        assert named[p >= 0.52].all()


@pytest.mark.parametrize("seed", range(2))
def test_what_is_seen_is_what_reaches_its_own_threshold(seed):
    rng = np.random.default_rng(seed)
    film = invented_film(seed=seed, **SMALL)
    concepts = [changed(one, threshold_p=float(rng.uniform(0.1, 0.9))) for one in film.model().concepts]
    film = with_model(film, concepts=concepts)
    rows = film.rows()
    for segment in film.segments().to_dict(orient="records"):
        part = rows[(rows["start_s"] >= segment["start_s"]) & (rows["end_s"] <= segment["end_s"])]
        part = part[part["p"].notna()]
        weights = durations(part)
        mean = {
            (one.name, what): np.average(part[f"{one.name}_{what}"], weights=weights)
            for one in concepts
            for what in ("p", "contribution")
        }
        seen = [one.name for one in concepts if mean[one.name, "p"] >= one.threshold_p]
        seen.sort(key=lambda name: -abs(mean[name, "contribution"]))
        assert segment["present"] == ";".join(seen)


@pytest.fixture(scope="module")
def lists(film):
    """The passages of the film by how many are asked for; None where nothing is said."""
    numbers = {None: film.segments()} | {top: film.segments(top=top) for top in (0, 20, 25)}
    n_reaching = int(numbers[None]["reaches"].sum())
    return numbers | {n_reaching + 2: film.segments(top=n_reaching + 2)}


def test_a_passage_has_one_number_by_time_in_every_list_in_the_file_and_on_the_page(film, lists):
    every = lists[None]
    reaching = every[every["reaches"] == 1].sort_values("start_s")
    assert reaching["number"].tolist() == [str(n) for n in range(1, len(reaching) + 1)]
    weak = every[every["reaches"] == 0].sort_values("start_s")
    assert weak["number"].tolist() == [f"w{n}" for n in range(1, len(weak) + 1)]
    number_of = dict(zip(every["start_s"], every["number"], strict=True))
    written = pd.read_csv(io.BytesIO(files_of(film)["segments.csv"]), dtype={"number": str})
    assert dict(zip(written["start_s"], written["number"], strict=True)) == number_of
    for listed in lists.values():
        some = dict(zip(listed["start_s"], listed["number"], strict=True))
        assert {start: some[start] for start in some if start in number_of}.items() <= number_of.items()
        assert len(set(some.values())) == len(some)
    for passage in data_of(film_page([film]))["passages"]:
        assert passage["number"] == number_of[passage["start"]]


def test_an_export_has_the_number_of_each_passage(film, lists, kind):
    number_of = dict(zip(lists[25]["start_s"], lists[25]["number"], strict=True))
    for span in collect(film, kind, tiers=["segments"], top=25).tiers[0].spans:
        assert span.number == number_of[span.start_s]
        assert span.text.startswith(f"{span.number}. ")


def test_exports_hold_the_passages_that_reach_and_top_adds_others_marked(film, lists, kind):
    reaching = lists[0]
    assert reaching["reaches"].all()
    spans = collect(film, kind, tiers=["segments"]).tiers[0].spans
    assert sorted(span.rank for span in spans) == reaching["rank"].tolist()
    n = len(reaching)
    more = collect(film, kind, tiers=["segments"], top=n + 2).tiers[0].spans
    assert len(more) == n + 2
    assert {span.rank for span in more if "below the threshold" in span.text} == {n + 1, n + 2}


def text_in(path):
    """Read an exported file, of an archive the project in it."""
    if not zipfile.is_zipfile(path):
        return path.read_text(encoding="utf-8")
    with zipfile.ZipFile(path) as archive:
        return archive.read("project.qde").decode("utf-8")


@pytest.mark.parametrize("why", ["nothing reaches", "nothing has a probability"])
def test_a_film_without_a_passage_gives_a_valid_empty_file_and_one_line(kind, why, tmp_path):
    if why == "nothing reaches":
        film = with_model(invented_film(**SMALL), threshold_p=0.999)
    else:
        film = invented_film(unlike_parts=((0.0, 1.0),), **SMALL)
    path = tmp_path / "film"
    found = collect(film, kind, tiers=["segments"])
    told = write_export(film, kind, path, tiers=["segments"])
    # Some have no row, marker or event for notes: all of them are told.
    has_no_place = kind in {"csv", "edl"}
    assert told.endswith(found.notice)
    assert (told == found.notice) != has_no_place
    assert len(found.notice.splitlines()) == 1
    assert not any(tier.spans for tier in found.tiers)
    text = text_in(path)
    assert (found.notice in (text.replace("_", " ") if kind == "rttm" else text)) != has_no_place
    if kind == "eaf":
        xmlschema = pytest.importorskip("xmlschema")
        xmlschema.XMLSchema(Path(__file__).parent / "exchange" / "eaf-3.0.xsd").validate(text)
    elif kind == "vtt":
        assert len(pytest.importorskip("webvtt").from_string(text)) == 0


# --- black pictures and credits
# ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rolling_film():
    """A film whose credits have probabilities, which count for nothing."""
    return invented_film(unlike_parts=(), **SMALL)


def start_of_credits(film):
    rows = film.rows()
    return rows.loc[has_flag(rows, "credits"), "start_s"].min()


def test_credits_have_no_line_no_strip_and_no_segment(rolling_film):
    rolling = has_flag(rolling_film.rows(), "credits")
    begin = start_of_credits(rolling_film)
    page = film_page([rolling_film])
    corners = drawn(charts.line(rolling_film.rows()))
    assert max(x for x, _ in corners) == round(10 * begin)
    rows = data_of(page)["rows"]
    packed = [rows["p"], rows["low"], rows["high"], *(concept["p"] for concept in rows["concepts"])]
    for values in map(percentages_of, packed):
        assert {value for value, there in zip(values, rolling, strict=True) if there} == {-1}
    assert 'fill="url(#f1-nothing)"' in page
    assert rolling_film.segments()["end_s"].max() <= begin


def test_credits_are_in_no_export(rolling_film, kind):
    begin = start_of_credits(rolling_film)
    for tier in collect(rolling_film, kind, tiers=KINDS, top=20).tiers:
        assert tier.kind == "shots" or all(span.end_s <= begin for span in tier.spans)


# --- small probabilities
# ---------------------------------------------------------------------------
def test_a_probability_near_nothing_is_below_a_hundredth_and_has_no_band_of_nothing():
    film = invented_film(**SMALL)
    table = film.table.copy()
    table[["p", "p_low", "p_high"]] = table[["p", "p_low", "p_high"]] * 0.004
    film = replace(film, table=table)
    page = film_page([film])
    assert "probability below 0.01" in page
    assert not re.search(r"\b0\.00\b", text_of(page))
    assert "0.00" not in {passage["value"] for passage in data_of(page)["passages"]}
    for kind in ("vtt", "eaf"):
        text = export(film, kind, tiers=["segments", "level"], top=20)
        assert "below 0.01" in text
        assert not re.search(r"\b0\.00\b", text)
