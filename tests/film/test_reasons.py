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
from tests.film.page.test_page import corners_of, text_of
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


@pytest.fixture
def all_found_better_than_chance(film):
    """The film by a model that finds every concept better than chance: notes name those that it does not."""
    concepts = [changed(concept, low=concept.chance + 0.01) for concept in film.model().concepts]
    return with_model(film, concepts=concepts)


def test_an_exported_passage_has_the_concepts_that_are_seen(film, kind):
    tier = collect(film, kind, tiers=["segments"]).tiers[0]
    (best_span,) = [span for span in tier.spans if span.rank == 1]
    assert best_span.present == ("Body",)


def test_no_export_names_a_concept_that_is_absent_from_every_passage(all_found_better_than_chance, kind):
    """The column `contributions` of tables has all concepts: only its texts are looked at."""
    film = all_found_better_than_chance
    text = export(film, kind, tiers=["segments"])
    if kind == "csv":
        text = " ".join(row["text"] for row in csv.DictReader(io.StringIO(text)))
    if kind != "rttm":  # its labels are names of tiers alone
        assert "Body" in text
    _, *others = film.segments(top=0)["present"]
    seen_elsewhere = {name for present in others for name in present.split(";")}
    for name in {"Activity", "Look"} - seen_elsewhere:
        assert name not in text


def test_the_table_has_the_contributions_of_all_concepts_and_the_names_of_those_that_are_seen(film, best):
    rows = csv.DictReader(io.StringIO(export(film, "csv", tiers=["segments"])))
    (row,) = [row for row in rows if row["start_s"] == str(best["start_s"])]
    assert row["contributions"] == "Activity +5.0000; Look -4.0000; Body +0.5000"
    assert row["present"] == "Body"


def test_the_tier_of_a_concept_has_no_span_where_it_is_absent(film, best):
    for tier in collect(film, "eaf", tiers=["concepts"]).tiers:
        inside = [
            span for span in tier.spans if span.start_s < best["end_s"] and span.end_s > best["start_s"]
        ]
        assert bool(inside) == (tier.name == "obygaze: Body")


@pytest.fixture
def best_passage(film, best):
    """The best passage as the page's script has it."""
    (passage,) = [one for one in data_of(film_page([film]))["passages"] if one["start"] == best["start_s"]]
    return passage


def test_the_page_says_for_and_against_which_side_each_concept_is(best_passage):
    """Of Activity the mean of values is above the usual one and that of probabilities below it."""
    words = Words("en")
    both_ways = words.say("why_parted", p="0.01", usual="0.17")
    in_favour, against = best_passage["sentence"].split("Against it: ")
    assert (
        f"For it: more Activity than usual ({both_ways}); "
        "more Body than usual (0.95, 0.17 at its usual value)"
    ) in in_favour
    assert against.startswith("more Look than usual")
    assert words["why_near_chance"] in against


def test_the_page_calls_an_absent_concept_not_seen_beside_its_contribution(best_passage):
    (activity,) = [part for part in best_passage["parts"] if part["name"] == "Activity"]
    assert activity["p"] == "not seen, 0.01"
    assert activity["value"] == "+5.00"


def test_the_page_draws_no_frames_of_absent_concepts(best_passage):
    names = {row["name"] for row in best_passage["frames"]["rows"]}
    assert "Body" in names
    assert not names & {"Activity", "Look"}


def test_the_page_reads_out_no_concept_below_its_threshold(film):
    """The script names a concept where its rounded percentage reaches the one in the data."""
    rows = film.rows()
    for concept in data_of(film_page([film]))["rows"]["concepts"]:
        p = rows[f"{concept['name']}_p"].to_numpy()
        named = np.array(percentages_of(concept["p"])) >= concept["seen"]
        assert (p[named] >= 0.5).all()
        assert named[p >= 0.52].all()


@pytest.mark.parametrize("seed", range(2))
def test_what_is_seen_is_what_reaches_its_own_threshold_with_the_largest_contribution_first(seed):
    rng = np.random.default_rng(seed)
    film = invented_film(seed=seed, **SMALL)
    concepts = [changed(one, threshold_p=float(rng.uniform(0.1, 0.9))) for one in film.model().concepts]
    film = with_model(film, concepts=concepts)
    rows = film.rows().dropna(subset="p")
    for segment in film.segments().to_dict(orient="records"):
        inside = rows[(rows["start_s"] >= segment["start_s"]) & (rows["end_s"] <= segment["end_s"])]

        def mean(column, inside=inside):
            return np.average(inside[column], weights=durations(inside))

        seen = [one.name for one in concepts if mean(f"{one.name}_p") >= one.threshold_p]
        seen.sort(key=lambda name: -abs(mean(f"{name}_contribution")))
        assert segment["present"] == ";".join(seen)


@pytest.fixture(scope="module")
def lists(film):
    """Lists of the film's passages by how many are asked for; under None the list of all that are written."""
    of_all = film.segments()
    n_reaching = int(of_all["reaches"].sum())
    lengths = (0, 20, 25, n_reaching + 2)
    return {None: of_all} | {length: film.segments(top=length) for length in lengths}


def numbers_by_start(passages):
    return dict(zip(passages["start_s"], passages["number"], strict=True))


def test_passages_that_reach_the_threshold_are_numbered_by_time_and_weaker_ones_apart(film):
    passages = film.segments().sort_values("start_s")
    reaching, weaker = passages[passages["reaches"] == 1], passages[passages["reaches"] == 0]
    assert reaching["number"].tolist() == [str(n) for n in range(1, len(reaching) + 1)]
    assert weaker["number"].tolist() == [f"w{n}" for n in range(1, len(weaker) + 1)]


def test_a_passage_has_one_number_however_many_are_listed(lists):
    number_of = numbers_by_start(lists[None])
    for listed in lists.values():
        numbers = numbers_by_start(listed)
        for start_s in numbers.keys() & number_of.keys():
            assert numbers[start_s] == number_of[start_s]
        assert len(set(numbers.values())) == len(numbers)


def test_a_passage_has_the_same_number_in_the_file_and_on_the_page(film):
    number_of = numbers_by_start(film.segments())
    table = pd.read_csv(io.BytesIO(files_of(film)["segments.csv"]), dtype={"number": str})
    assert numbers_by_start(table) == number_of
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


@pytest.fixture(params=["nothing reaches the threshold", "nothing has a probability"])
def without_passages(request):
    if request.param == "nothing reaches the threshold":
        return with_model(invented_film(**SMALL), threshold_p=0.999)
    return invented_film(unlike_parts=((0.0, 1.0),), **SMALL)


def test_an_export_of_a_film_without_passages_has_no_span_and_a_notice_of_one_line(
    without_passages, kind, tmp_path
):
    exported = collect(without_passages, kind, tiers=["segments"])
    assert not any(tier.spans for tier in exported.tiers)
    assert len(exported.notice.splitlines()) == 1
    told = write_export(without_passages, kind, tmp_path / "film", tiers=["segments"])
    text = text_in(tmp_path / "film")
    if kind == "rttm":  # it writes _ for a space
        text = text.replace("_", " ")
    if kind in {"csv", "edl"}:  # these have no row or event for notes: all of them are told
        assert told.endswith(exported.notice)
        assert told != exported.notice
        assert exported.notice not in text
    else:
        assert told == exported.notice
        assert exported.notice in text


@pytest.mark.long
def test_elans_document_of_a_film_without_passages_is_valid(without_passages):
    xmlschema = pytest.importorskip("xmlschema")
    schema = xmlschema.XMLSchema(Path(__file__).parent / "exchange" / "eaf-3.0.xsd")
    schema.validate(export(without_passages, "eaf", tiers=["segments"]))


def test_webvtt_of_a_film_without_passages_has_no_cue(without_passages):
    webvtt = pytest.importorskip("webvtt")
    assert len(webvtt.from_string(export(without_passages, "vtt", tiers=["segments"]))) == 0


# --- black pictures and credits
# ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def with_credits():
    """A film whose credits have probabilities, which count for nothing."""
    return invented_film(unlike_parts=(), **SMALL)


def start_of_credits(film):
    rows = film.rows()
    return rows.loc[has_flag(rows, "credits"), "start_s"].min()


def test_the_line_of_probabilities_ends_where_the_credits_begin(with_credits):
    corners = corners_of(charts.line(with_credits.rows()))
    assert max(x for x, _ in corners) == round(10 * start_of_credits(with_credits))  # tenths of a second


def test_credits_have_no_probability_in_the_pages_data_and_are_hatched(with_credits):
    is_credits = has_flag(with_credits.rows(), "credits")
    page = film_page([with_credits])
    rows = data_of(page)["rows"]
    for packed in (rows["p"], rows["low"], rows["high"], *(concept["p"] for concept in rows["concepts"])):
        none = -1
        assert set(np.array(percentages_of(packed))[is_credits]) == {none}
    assert 'fill="url(#f1-nothing)"' in page


def test_no_passage_reaches_into_the_credits(with_credits):
    assert with_credits.segments()["end_s"].max() <= start_of_credits(with_credits)


def test_nothing_but_shots_is_exported_of_the_credits(with_credits, kind):
    start_s = start_of_credits(with_credits)
    for tier in collect(with_credits, kind, tiers=KINDS, top=20).tiers:
        if tier.kind != "shots":
            assert all(span.end_s <= start_s for span in tier.spans)


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
