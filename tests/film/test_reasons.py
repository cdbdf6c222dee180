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
from obygaze_film.claims.of_film import passage as claim_of_passage
from obygaze_film.claims.of_film import passage_reasons
from obygaze_film.exchange import KINDS, collect, export, write_export
from obygaze_film.page import charts, film_page
from obygaze_film.schema import durations, has_flag
from obygaze_film.scored_files import files_of
from obygaze_film.segments import Reason as SegmentReason
from obygaze_film.segments import is_reason, n_reaching
from tests.film.page.invented import CONCEPTS, fake_scored_film, with_model
from tests.film.page.test_page import corners_of, text_of
from tests.film.saying import data_of, percentages_of

SMALL = {"n_rows": 60, "duration_s": 600.0}


@pytest.fixture(scope="module")
def film_decided_by_absent_concepts():
    """A film whose best segment is decided by Activity and Look, which are absent; only Body is seen."""
    film = fake_scored_film(traced=True, **SMALL)
    strongest_segment = film.segments().iloc[0]
    table = film.table.copy()
    inside = (table["start_s"] >= strongest_segment["start_s"]) & (
        table["end_s"] <= strongest_segment["end_s"]
    )
    for name, *_ in CONCEPTS:
        table.loc[inside, [f"{name}_p", f"{name}_contribution"]] = (0.3, 0.01)
    table.loc[inside, ["Body_p", "Body_contribution"]] = (0.95, 0.5)
    table.loc[inside, ["Activity_p", "Activity_contribution"]] = (0.01, 5.0)
    table.loc[inside, ["Look_p", "Look_contribution"]] = (0.02, -4.0)
    return replace(film, table=table)


@pytest.fixture(scope="module")
def strongest_segment(film_decided_by_absent_concepts):
    """The film's strongest segment."""
    return film_decided_by_absent_concepts.segments().iloc[0]


def test_a_segment_keeps_all_reasons_and_says_which_are_seen(
    film_decided_by_absent_concepts, strongest_segment
):
    """In the film's strongest passage three concepts matter: only Body reaches its threshold of .5.

    They are planted with these probabilities and contributions: Activity .01 and +5, Look .02 and -4,
    Body .95 and +.5. All are kept, the largest contribution first.
    """
    assert strongest_segment["present"] == "Body"
    assert strongest_segment["concepts"] == "Activity;Look;Body"

    written = pd.read_csv(io.BytesIO(files_of(film_decided_by_absent_concepts)["segments.csv"]))
    strongest = written.iloc[0]
    assert strongest["present"] == "Body"
    assert strongest["concepts_p"] == "0.0100;0.0200;0.9500"
    assert strongest["contributions"] == "5.0000;-4.0000;0.5000"


@pytest.fixture
def film_with_activity_of_78496(film_decided_by_absent_concepts):
    """The film, with the concept Activity at a probability of .78496 throughout its best passage."""
    best_passage = film_decided_by_absent_concepts.segments().iloc[0]
    table = film_decided_by_absent_concepts.table.copy()
    is_inside = (table["start_s"] >= best_passage["start_s"]) & (table["end_s"] <= best_passage["end_s"])
    table.loc[is_inside, "Activity_p"] = 0.78496
    return replace(film_decided_by_absent_concepts, table=table)


def test_a_sentence_prints_the_probability_of_a_reason_from_its_unrounded_mean(film_with_activity_of_78496):
    """Activity is a reason for the best passage, with a mean probability of .78496.

    To two decimals that is 0.78. Rounded to four decimals first (.7850), it would become 0.79.
    """
    film = film_with_activity_of_78496
    best_passage = film.segments().iloc[0]

    claim = claim_of_passage(film.model(), best_passage)

    (activity,) = [reason for reason in claim.reasons if reason.what == "Activity"]
    assert phrases.reason_p(activity, Words("en")) == "0.78"


def test_the_file_of_passages_has_the_probability_of_a_reason_to_four_decimals(film_with_activity_of_78496):
    """Activity has a mean probability of .78496 in the best passage, which is the first row of the file."""
    segments_csv = files_of(film_with_activity_of_78496)["segments.csv"]

    best_passage = pd.read_csv(io.BytesIO(segments_csv)).iloc[0]

    assert "0.7850" in best_passage["concepts_p"].split(";")


def reason_to_lower_p(concept, *, contribution, change_of_p):
    """Make a reason that lowers a passage's probability, as there is less of a concept than usual."""
    return SegmentReason(
        concept=concept,
        p=0.1,
        contribution=contribution,
        is_present=False,
        usual_p=0.4,
        amount="less",
        change=change_of_p,
    )


def test_a_sentence_names_first_what_changes_the_probability_most(film_decided_by_absent_concepts):
    """Look contributes more to the logit (-.135), and Body changes the probability more (-.0122).

    Readers see probabilities: Body comes first.
    """
    look = reason_to_lower_p("Look", contribution=-0.135, change_of_p=-0.0113)
    body = reason_to_lower_p("Body", contribution=-0.129, change_of_p=-0.0122)
    first_eight_seconds = ClaimTime("span", seconds=8.0, start_s=0.0, end_s=8.0)
    reasons = passage_reasons(film_decided_by_absent_concepts.model(), [look, body], first_eight_seconds)
    assert [reason.what for reason in reasons] == ["Look", "Body"]

    sentence = phrases.reasons_sentence(reasons, Words("en"))
    assert sentence.index("Body") < sentence.index("Look")

    sentence_of_one = phrases.reasons_sentence(reasons, Words("en"), maximum=1)
    assert "Body" in sentence_of_one
    assert "Look" not in sentence_of_one


@pytest.fixture
def all_found_better_than_chance(film_decided_by_absent_concepts):
    """The film by a model that finds every concept better than by chance.

    Then exports have no note that names the concepts of which this is not sure.
    """
    concepts = [
        changed(concept, low=concept.chance + 0.01)
        for concept in film_decided_by_absent_concepts.model().concepts
    ]
    return with_model(film_decided_by_absent_concepts, concepts=concepts)


def test_no_export_names_a_concept_that_is_absent_from_every_passage(
    all_found_better_than_chance, export_format
):
    """The strongest passage of a film has its high probability as Activity and Look are absent from it.

    Who reads the name of a concept at a passage takes it to be there. So an export names one of the two only
    if another passage has it, and has the name of Body, which is present.
    """
    film = all_found_better_than_chance
    passages_strongest_first = film.segments(top=0)
    present_in_other_passages = set()
    for names in passages_strongest_first["present"].iloc[1:]:
        present_in_other_passages |= set(names.split(";"))
    absent_from_all = {"Activity", "Look"} - present_in_other_passages
    assert absent_from_all  # else nothing would be tested below

    text = export(film, export_format, tiers=["segments"])
    if export_format == "csv":  # its column of contributions has all concepts, present or not
        text = " ".join(row["text"] for row in csv.DictReader(io.StringIO(text)))

    if export_format != "rttm":  # its labels are names of tiers alone
        assert "Body" in text
    for name in absent_from_all:
        assert name not in text


def test_the_table_has_all_contributions_and_the_seen_concepts(
    film_decided_by_absent_concepts, strongest_segment
):
    """In the strongest passage Activity (+5) and Look (-4) contribute by their absence; only Body is seen."""
    rows = csv.DictReader(io.StringIO(export(film_decided_by_absent_concepts, "csv", tiers=["segments"])))
    (strongest,) = [row for row in rows if row["start_s"] == str(strongest_segment["start_s"])]
    assert strongest["contributions"] == "Activity +5.0000; Look -4.0000; Body +0.5000"
    assert strongest["present"] == "Body"


def test_the_tier_of_a_concept_has_no_span_where_it_is_absent(
    film_decided_by_absent_concepts, strongest_segment
):
    """Within the strongest passage only Body is seen, and so only its tier has spans there."""
    tiers_of_concepts = collect(film_decided_by_absent_concepts, "eaf", tiers=["concepts"]).tiers

    with_spans_in_passage = set()
    for tier in tiers_of_concepts:
        for span in tier.spans:
            if span.start_s < strongest_segment["end_s"] and span.end_s > strongest_segment["start_s"]:
                with_spans_in_passage.add(tier.name)
    assert with_spans_in_passage == {"obygaze: Body"}


@pytest.fixture(scope="module")
def page_data(film_decided_by_absent_concepts):
    """What the script of the film's page reads."""
    return data_of(film_page([film_decided_by_absent_concepts]))


@pytest.fixture(scope="module")
def best_passage(page_data, strongest_segment):
    """The best passage as the page's script has it."""
    (passage,) = [
        passage for passage in page_data["passages"] if passage["start"] == strongest_segment["start_s"]
    ]
    return passage


def test_the_page_says_what_speaks_for_a_passage_and_what_against_it(best_passage):
    """Of the logit of a passage Activity adds +5 and Body +.5, for it, and Look -4, against it.

    Body has the probability .95, and .17 where its value is the usual one: there is more of it than usual.
    Activity's values are above the usual one on average as well, but its mean probability is .01, below the
    usual .17. The sentence says so, that nobody takes the one for the other. Look is a concept that the model
    finds hardly better than by chance, which is said, too.
    """
    words = Words("en")
    probability_is_lower_than_usual = words.say("why_parted", p="0.01", usual="0.17")
    more_activity = f"more Activity than usual ({probability_is_lower_than_usual})"
    more_body = "more Body than usual (0.95, 0.17 at its usual value)"

    for_it, against_it = best_passage["sentence"].split("Against it: ")

    assert f"For it: {more_activity}; {more_body}" in for_it
    assert against_it.startswith("more Look than usual")
    assert words["why_near_chance"] in against_it


def test_the_page_calls_an_absent_concept_not_seen_beside_its_contribution(best_passage):
    """Activity contributes +5.00 though it is not seen: the page must not let readers think it is there.

    It draws no frames of what is absent.
    """
    (activity,) = [part for part in best_passage["parts"] if part["name"] == "Activity"]
    assert activity["p"] == "not seen, 0.01"
    assert activity["value"] == "+5.00"
    names = {row["name"] for row in best_passage["frames"]["rows"]}
    assert "Body" in names
    assert not names & {"Activity", "Look"}


def test_the_script_of_the_page_names_a_concept_only_in_rows_where_it_reaches_its_threshold(
    film_decided_by_absent_concepts, page_data
):
    """All thresholds are .5. The script has a row's probability of a concept as a whole percentage.

    It names a concept from `seen` % on, which must be so high that no row below .5 is named, even where a
    percentage was rounded up. For that it may leave out rows of .5 to .52, but none above.
    """
    rows = film_decided_by_absent_concepts.rows()
    for concept in page_data["rows"]["concepts"]:
        probabilities = rows[f"{concept['name']}_p"].to_numpy()
        percentages = np.array(percentages_of(concept["p"]))
        is_named = percentages >= concept["seen"]

        assert (probabilities[is_named] >= 0.5).all()
        assert is_named[probabilities >= 0.52].all()


def seen_by_hand(segment, rows, concepts):
    """Name the concepts whose mean probability in a passage reaches their threshold.

    The one with the largest contribution, of either sign, comes first.
    """
    is_inside = (rows["start_s"] >= segment["start_s"]) & (rows["end_s"] <= segment["end_s"])
    rows_inside = rows[is_inside]

    def mean(column):
        return np.average(rows_inside[column], weights=durations(rows_inside))

    seen = [concept.name for concept in concepts if mean(f"{concept.name}_p") >= concept.threshold_p]
    return sorted(seen, key=lambda name: -abs(mean(f"{name}_contribution")))


def with_random_thresholds(film, seed):
    """Give each concept of a film's model a threshold from .1 to .9."""
    rng = np.random.default_rng(seed)
    concepts = [
        changed(concept, threshold_p=float(rng.uniform(0.1, 0.9))) for concept in film.model().concepts
    ]
    return with_model(film, concepts=concepts)


@pytest.mark.parametrize("seed", range(2))
def test_a_passage_lists_seen_concepts_by_their_contribution(seed):
    """A concept is seen in a passage if its mean probability there reaches its threshold, one of .1 to .9.

    The column `present` has the names of the seen concepts, that with the largest contribution, of either
    sign, first. `seen_by_hand` computes both from the film's rows.
    """
    film = with_random_thresholds(fake_scored_film(seed=seed, **SMALL), seed)
    concepts = film.model().concepts
    rows_with_probability = film.rows().dropna(subset="p")

    passages = film.segments().to_dict(orient="records")

    for passage in passages:
        names_of_seen = seen_by_hand(passage, rows_with_probability, concepts)
        assert passage["present"] == ";".join(names_of_seen)


def numbers_by_start(passages):
    """Return the number of each passage by its start."""
    return dict(zip(passages["start_s"], passages["number"], strict=True))


def test_passages_are_numbered_by_time_and_weaker_ones_apart(film_decided_by_absent_concepts):
    """Passages are 1, 2, 3, ... in order of time, and places below the threshold w1, w2, ..."""
    by_time = film_decided_by_absent_concepts.segments().sort_values("start_s")
    reaching = by_time[by_time["reaches"] == 1]
    weaker = by_time[by_time["reaches"] == 0]
    one_to_last = [str(n) for n in range(1, len(reaching) + 1)]
    w1_to_last = [f"w{n}" for n in range(1, len(weaker) + 1)]

    assert reaching["number"].tolist() == one_to_last
    assert weaker["number"].tolist() == w1_to_last


def test_a_passages_number_does_not_depend_on_how_many_passages_are_listed(film_decided_by_absent_concepts):
    """People cite passages by their numbers, as they are in the file that is written of a film.

    A list of another length (`top` is how many are asked for) may have passages that the file has not, or
    lack some. Those that are in both have the same number in both, and no two passages of a list have one.
    """
    film = film_decided_by_absent_concepts
    passages_in_file = film.segments()
    number_in_file = numbers_by_start(passages_in_file)
    assert len(set(number_in_file.values())) == len(number_in_file)

    n_reaching_threshold = int(passages_in_file["reaches"].sum())
    for top in (0, 20, 25, n_reaching_threshold + 2):
        number_in_list = numbers_by_start(film.segments(top=top))
        for start_s, number in number_in_list.items():
            if start_s in number_in_file:
                assert number == number_in_file[start_s]
        assert len(set(number_in_list.values())) == len(number_in_list)


def test_a_passage_has_the_same_number_in_the_file_and_on_the_page(
    film_decided_by_absent_concepts, page_data
):
    """Whoever cites passage 3 of the page must find it as 3 in the file."""
    number_of = numbers_by_start(film_decided_by_absent_concepts.segments())
    table = pd.read_csv(
        io.BytesIO(files_of(film_decided_by_absent_concepts)["segments.csv"]), dtype={"number": str}
    )
    assert numbers_by_start(table) == number_of
    for passage in page_data["passages"]:
        assert passage["number"] == number_of[passage["start"]]


def exported_passages(film, **options):
    """Return the spans of passages that an export of the film has."""
    (tier,) = collect(film, "eaf", tiers=["segments"], **options).tiers
    return tier.spans


def test_an_export_has_the_passages_that_reach_the_threshold(film_decided_by_absent_concepts):
    """`top=0` asks for no passage below the threshold."""
    reaching = film_decided_by_absent_concepts.segments(top=0)
    exported = exported_passages(film_decided_by_absent_concepts)
    assert sorted(span.rank for span in exported) == reaching["rank"].tolist()


def test_an_export_says_which_passages_are_below_the_threshold(film_decided_by_absent_concepts):
    """An export asks for the strongest passages, two more than reach the model's threshold.

    Passages have ranks by their strength: the last two by rank have "below the threshold" in their text.
    """
    film = film_decided_by_absent_concepts
    n_reaching_threshold = len(film.segments(top=0))

    exported = exported_passages(film, top=n_reaching_threshold + 2)

    assert len(exported) == n_reaching_threshold + 2
    ranks_below = {span.rank for span in exported if "below the threshold" in span.text}
    assert ranks_below == {n_reaching_threshold + 1, n_reaching_threshold + 2}


def test_passages_have_the_same_numbers_in_an_export_as_in_the_table_of_a_film(
    film_decided_by_absent_concepts,
):
    """An export begins each passage's text with its number, as "3. ", and asks for fewer passages than 25.

    A passage has the number that it has among the 25 strongest of the film.
    """
    film = film_decided_by_absent_concepts
    number_of = numbers_by_start(film.segments(top=25))

    exported = exported_passages(film, top=len(film.segments(top=0)) + 2)

    assert exported
    for span in exported:
        assert span.number == number_of[span.start_s]
        assert span.text.startswith(f"{span.number}. ")


def text_in(path):
    """Read an exported file; one for qualitative research is an archive, of which the project is read."""
    if not zipfile.is_zipfile(path):
        return path.read_text(encoding="utf-8")
    with zipfile.ZipFile(path) as archive:
        return archive.read("project.qde").decode("utf-8")


@pytest.fixture(scope="module", params=["nothing reaches the threshold", "nothing has a probability"])
def without_passages(request):
    """A film without passages: its probabilities are too low, or it has none."""
    if request.param == "nothing reaches the threshold":
        return with_model(fake_scored_film(**SMALL), threshold_p=0.999)
    return fake_scored_film(unlike_parts=((0.0, 1.0),), **SMALL)


def test_an_export_of_a_film_without_passages_says_that_there_are_none(
    without_passages, export_format, tmp_path
):
    """No passage reaches the threshold, or nothing has a probability. An empty file would look like an error.

    So a notice of one line, that there are none, is in the file, and the writing function returns it to be
    printed. A csv and an edl have no place for notes: then it returns all notes, the notice last.
    """
    film = without_passages
    exported = collect(film, export_format, tiers=["segments"])
    for tier in exported.tiers:
        assert not tier.spans
    notice = exported.notice
    assert len(notice.splitlines()) == 1

    to_be_printed = write_export(film, export_format, tmp_path / "film", tiers=["segments"])

    text = text_in(tmp_path / "film")
    if export_format == "rttm":  # it writes _ for a space
        text = text.replace("_", " ")
    has_no_place_for_notes = export_format in {"csv", "edl"}
    if has_no_place_for_notes:
        assert notice not in text
        assert to_be_printed.endswith(notice)
        assert to_be_printed != notice
    else:
        assert notice in text
        assert to_be_printed == notice


def test_elans_document_of_a_film_without_passages_is_valid(without_passages):
    """ELAN's own schema of its files, version 3.0, accepts it."""
    xmlschema = pytest.importorskip("xmlschema")
    schema = xmlschema.XMLSchema(Path(__file__).parent / "exchange" / "eaf-3.0.xsd")
    schema.validate(export(without_passages, "eaf", tiers=["segments"]))


# --- black pictures and credits
# ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def with_credits():
    """A film whose credits have probabilities, which count for nothing."""
    return fake_scored_film(unlike_parts=(), **SMALL)


def start_of_credits(film):
    """Return the second at which the film's credits begin."""
    rows = film.rows()
    return rows.loc[has_flag(rows, "credits"), "start_s"].min()


def test_the_line_of_probabilities_ends_where_the_credits_begin(with_credits):
    """The chart's line is a path of SVG, whose x are tenths of a second."""
    path = charts.line(with_credits.rows())
    last_x = max(x for x, _ in corners_of(path))
    assert last_x == round(10 * start_of_credits(with_credits))


def test_credits_have_no_probability_on_the_page_and_are_hatched(with_credits):
    """Credits are no content: neither the curve nor its band nor a concept has a number there."""
    is_credits = has_flag(with_credits.rows(), "credits")

    page = film_page([with_credits])

    hatching_of_black_and_credits = 'fill="url(#f1-nothing)"'
    assert hatching_of_black_and_credits in page
    rows = data_of(page)["rows"]
    curves = [rows["p"], rows["low"], rows["high"]]
    curves += [concept["p"] for concept in rows["concepts"]]
    for curve in curves:
        percentages = np.array(percentages_of(curve))
        assert (percentages[is_credits] == -1).all()  # -1 where there is none


def test_nothing_but_shots_is_exported_of_the_credits(with_credits):
    """All kinds of tiers are exported, and the 20 strongest passages; only shots go on into the credits."""
    credits_start_s = start_of_credits(with_credits)
    for tier in collect(with_credits, "eaf", tiers=KINDS, top=20).tiers:
        if tier.kind != "shots":
            assert all(span.end_s <= credits_start_s for span in tier.spans)


# --- small probabilities
# ---------------------------------------------------------------------------
@pytest.fixture
def improbable():
    """A film whose probabilities are all below .005, which would be rounded to 0.00."""
    film = fake_scored_film(**SMALL)
    table = film.table.copy()
    table[["p", "p_low", "p_high"]] *= 0.004
    return replace(film, table=table)


def test_a_page_calls_a_tiny_probability_below_a_hundredth(improbable):
    """As "0.00" a probability would seem to be excluded by the model.

    All probabilities of the film are below .005.
    """
    page = film_page([improbable])
    assert "probability below 0.01" in page
    assert not re.search(r"\b0\.00\b", text_of(page))
    assert "0.00" not in {passage["value"] for passage in data_of(page)["passages"]}


@pytest.mark.parametrize("export_format", ["vtt", "eaf"])
def test_an_export_calls_a_tiny_probability_below_a_hundredth(improbable, export_format):
    """All probabilities of the film are below .005, which would be rounded to 0.00."""
    text = export(improbable, export_format, tiers=["segments", "level"], top=20)
    assert "below 0.01" in text
    assert not re.search(r"\b0\.00\b", text)


@pytest.mark.parametrize(("gap_s", "n_passages"), [(4.9, 1), (5.0, 1), (5.1, 2)])
def test_a_passage_goes_on_over_a_gap_of_five_seconds_at_most(gap_s, n_passages):
    """A film reaches the threshold, .5, from 20 to 28 s, and for 8 s more after a gap that is below it.

    That is one passage if the gap is short, and two if it is longer.
    """
    gap_end_s = 28.0 + gap_s
    before = {"start_s": 0.0, "end_s": 20.0, "p": 0.1}
    first_reaching = {"start_s": 20.0, "end_s": 28.0, "p": 0.5}
    gap = {"start_s": 28.0, "end_s": gap_end_s, "p": 0.1}
    second_reaching = {"start_s": gap_end_s, "end_s": gap_end_s + 8.0, "p": 0.5}
    rows = pd.DataFrame([before, first_reaching, gap, second_reaching]).assign(flags="")
    any_model = fake_scored_film(**SMALL).model()
    model = changed(any_model, threshold_p=0.5)

    n_passages_that_reach_the_threshold = n_reaching(rows, model)

    assert n_passages_that_reach_the_threshold == n_passages


@pytest.mark.parametrize(
    ("contribution", "change", "is_enough"),
    [
        (9.0, 0.01, True),
        (9.0, -0.00996, True),
        (9.0, 0.0099, False),
        (0.05, None, True),
        (-0.04996, None, True),
        (0.0499, None, False),
    ],
    ids=["change", "rounded change", "small change", "contribution", "rounded", "small contribution"],
)
def test_a_concept_is_a_reason_from_a_hundredth_of_the_probability_on(contribution, change, is_enough):
    """If the change is not known, from .05 of the logit on; numbers count as tables print them."""
    assert is_reason(contribution, change) == is_enough
