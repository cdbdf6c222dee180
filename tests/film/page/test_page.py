"""What the page says of a film, without a browser."""

import io
import json
import re
from base64 import b64decode, b64encode
from dataclasses import replace as film_of
from html import escape, unescape
from xml.dom import minidom

import numpy as np
import pytest
from msgspec.structs import replace
from PIL import Image

from obygaze_features.manifest import BUILTIN, builtin_codebook
from obygaze_film.claims import LANGUAGES, Words
from obygaze_film.claims.kinds import ALL_UNLIKE, ClaimTime
from obygaze_film.claims.of_film import marked_passages, passage_reasons
from obygaze_film.claims.phrases import no_prediction_phrase, reasons_sentence
from obygaze_film.claims.words import clock
from obygaze_film.commands.film_lines import lines_of_film
from obygaze_film.exchange import Decided, export
from obygaze_film.page import Owned, ScoredCopy, charts, film_page
from obygaze_film.page.figure_pdf import figure_pdf
from obygaze_film.page.figures import film_figure, text_width
from obygaze_film.page.view import FilmView
from obygaze_film.page.view_model import decisions_data
from obygaze_film.schema import EvidenceRecord
from obygaze_film.segments import Reason, reasons
from obygaze_models.prediction import mean_probability
from obygaze_models.report.pages import asset
from tests.film.page.invented import invented_film, with_model
from tests.film.saying import data_of, evidence_line, first_sentence, heading_of, percentages_of

SMALL = {"n_rows": 60, "duration_s": 600.0}


def text_of(page):
    """Words of a page, without scripts and tags."""
    body = re.sub(r"<(script|style|template)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(re.sub("<[^>]*>", " ", body).split())


def test_the_same_film_gives_the_same_bytes_in_each_language():
    pages = {language: film_page([invented_film(**SMALL)], language=language) for language in LANGUAGES}
    assert pages["en"] == film_page([invented_film(**SMALL)], language="en")
    assert '<html lang="fr">' in pages["fr"]
    assert re.findall(r"\d+\.\d{3,}", text_of(pages["en"])) == []  # two decimals at most


def test_every_text_is_there_in_every_language_with_the_same_places():
    import tomllib

    for name, package in (
        ("film", "obygaze_film.page"),
        ("claims", "obygaze_film.claims"),
        ("notes", "obygaze_film"),
    ):
        texts = {language: tomllib.loads(asset(f"{name}.{language}.toml", package)) for language in LANGUAGES}
        assert texts["en"].keys() == texts["fr"].keys()
        for key, words in texts["en"].items():
            assert sorted(re.findall(r"{\w*", words)) == sorted(re.findall(r"{\w*", texts["fr"][key])), key


def test_what_must_be_known_comes_first():
    page = text_of(film_page([invented_film(**SMALL)]))
    in_order = ["the model marks", "Open your own copy", "Passages", "kappa", "no verdict on a film"]
    places = [page.index(words) for words in in_order]
    assert places == sorted(places)


def test_a_film_that_the_model_was_trained_on_says_so_in_title_and_heading_and_no_first_sentence():
    film = invented_film(trained_on=True, **SMALL)
    assert first_sentence(film) == ""
    assert "no prediction: the model was trained on this film" in heading_of(film)
    page = film_page([film])
    for element in ("title", "h1"):
        assert re.search(f"<{element}[^>]*>(.*?)( <small>|</{element}>)", page)[1] == heading_of(film)


def seconds_of(rows, film):
    """Add up the seconds of rows at the threshold or above."""
    reaching = rows[rows["p"] >= film.model().threshold_p]
    return float((reaching["end_s"] - reaching["start_s"]).sum())


def test_the_first_sentence_is_in_the_codebooks_words_and_counts_what_reaches_the_threshold():
    film = with_model(invented_film(), means={"S": "staged like what experts call M"})
    time, rows = film.time(), film.rows()
    passages = film.segments().query("reaches == 1")
    reaching_s = 0.0  # a passage may go on over rows below the threshold
    for start_s, end_s in passages[["start_s", "end_s"]].to_numpy():
        reaching_s += seconds_of(rows[(rows["start_s"] >= start_s) & (rows["end_s"] <= end_s)], film)
    judged, marked, reaching, black = (
        f"{seconds / 60:.1f}"
        for seconds in (time.judged_s, passages["judged_s"].sum(), reaching_s, time.black_or_credits_s)
    )
    share = Words("en").shares_of_whole([time.judged_s, time.unjudged_s, time.black_or_credits_s])[0]
    assert first_sentence(film).startswith(
        f"Of the {judged} minutes that it can judge ({share} of the film; {black} minutes of "
        f"black or credits) the model marks {len(passages)} passages, {marked} minutes ({reaching} minutes "
        "of them at its threshold or above), as S (Sure: staged like what experts call M)"
    )
    none_reaches = first_sentence(with_model(film, threshold_p=1.0), "pcbm_lr", "fr")
    assert none_reaches.startswith(f"Des {judged.replace('.', ',')} minutes qu’il peut juger")
    assert "le modèle ne marque aucun passage" in none_reaches


def test_the_first_sentence_names_concepts_that_speak_for_the_passages():
    film = invented_film()
    passages = film.segments().query("reaches == 1")
    names = [concept.name for concept in marked_passages(film, film.model(), passages).concepts]
    assert names
    assert all(name in first_sentence(film) for name in names[:3])
    contributions = [name for name in film.table if name.endswith("_contribution")]
    all_against = -film.table[contributions].abs()
    film_against = film_of(film, table=film.table.assign(**all_against))
    assert marked_passages(film_against, film.model(), passages).concepts == ()


@pytest.mark.parametrize("unlike", [0.0, 0.1, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_parts_of_the_time_add_up_and_each_number_of_the_first_sentence_is_one_of_them(unlike, language):
    film = invented_film(unlike_parts=((0.0, unlike),) if unlike else (), **SMALL)
    rows, time, words = film.rows(), film.time(), Words(language)
    seconds = rows["end_s"] - rows["start_s"]
    assert time.black_or_credits_s == pytest.approx(seconds[rows["flags"].str.contains("credits")].sum())
    assert time.judged_s == pytest.approx(seconds[rows["p"].notna()].sum())
    assert time.judged_s + time.unjudged_s + time.black_or_credits_s == pytest.approx(film.record.duration_s)
    hatched = FilmView(film, "f1", words, top=20).hatched
    for kind, part_s in (("unlike", time.unjudged_s), ("nothing", time.black_or_credits_s)):
        drawn_s = sum(one["end"] - one["start"] for one in hatched if one["kind"] == kind)
        assert drawn_s == pytest.approx(part_s)
    sentence = first_sentence(film, language=language)
    if not time.judged_s:
        assert sentence == ""
        return
    reached = film.segments().query("reaches == 1")
    marked_s = reached["judged_s"].sum()
    lengths = words.durations(time.judged_s, marked_s, time.black_or_credits_s)
    assert lengths[0] in sentence
    assert words.share(time.judged_s / 600) in sentence
    says_nothing = {"en": "it says nothing of the rest", "fr": "il ne dit rien du reste"}[language]
    content_s = time.judged_s + time.unjudged_s
    assert (says_nothing in sentence) == (time.unjudged_s > 0.2 * content_s)
    for row in reached.to_dict(orient="records"):
        inside = (rows["start_s"] >= row["start_s"]) & (rows["end_s"] <= row["end_s"])
        assert row["judged_s"] == pytest.approx(seconds[inside & rows["p"].notna()].sum())
    if len(reached):
        assert lengths[1] in sentence
    assert (lengths[2] in sentence) == (time.black_or_credits_s > 0)


def test_credits_that_are_unlike_everything_too_are_credits():
    film = invented_film(unlike_parts=((0.9, 1.0),), **SMALL)
    table = film.table.assign(
        flags=[flags.replace("unlike", "unlike;credits") if at > 0.96 * 600 else flags
               for flags, at in zip(film.table["flags"], film.table["start_s"], strict=True)]
    )  # fmt: skip
    film = film_of(film, table=table)
    last = FilmView(film, "f1", Words("en"), top=20).hatched[-1]
    assert (last["kind"], last["end"]) == ("nothing", 600.0)
    assert film.time().whole_s == pytest.approx(600.0)


def test_passages_are_in_time_order_and_keep_the_rank_of_their_strength():
    passages = data_of(film_page([invented_film()]))["passages"]
    marked = [passage for passage in passages if not passage["below"]]
    times = [passage["start"] for passage in marked]
    ranks = [passage["rank"] for passage in marked]
    assert times == sorted(times)
    assert sorted(ranks) == list(range(1, len(ranks) + 1))
    assert ranks != sorted(ranks)
    assert [passage["number"] for passage in marked] == [str(n) for n in range(1, len(ranks) + 1)]


def test_a_film_unlike_training_has_no_probability_and_no_rate():
    film = invented_film(unlike_parts=((0.0, 1.0),), **SMALL)
    page = film_page([film])
    assert re.search("<title>(.*?)</title>", page)[1] == heading_of(film)
    assert not re.search(r"\d+%\s*\[", text_of(page))
    assert percentages_of(data_of(page)["rows"]["p"]) == [-1] * 60


def figures(film, **options):
    """Value, interval, what and note of the three key figures."""
    part = film_page([film], **options).split('<div class="figures">')[1].split("</section>")[0]
    texts = re.findall(
        '<p class="value">(.*?)</p>(.*?)<p>(.*?)</p>\n<p class="facts">(.*?)</p>', part, re.DOTALL
    )
    return [tuple(map(unescape, found)) for found in texts]


def warnings(film):
    return re.findall('class="warning"><strong>(.*?)</strong>', film_page([film]))


def test_a_film_without_a_reliable_second_has_a_warning():
    film, words = invented_film(unlike_parts=((0.0, 1.0),), **SMALL), Words("en")
    assert film.model().rate.unreliable == 1
    why_nothing = no_prediction_phrase(ALL_UNLIKE, words)
    assert words.say("nothing_printed", why=why_nothing) in warnings(film)


def test_the_figure_of_a_share_that_is_refused_says_why():
    film = invented_film(**SMALL)
    no_rate = replace(film.model().rate, value=None)
    assert "EN" in figures(with_model(film, levels_left_out=["EN"], rate=no_rate))[0][-1]
    half_unlike = invented_film(unlike_parts=((0.0, 0.5),), **SMALL)
    time = half_unlike.time()
    share_unlike = time.unjudged_s / (600.0 - time.black_or_credits_s)
    assert Words("en").share(share_unlike) in figures(half_unlike)[0][-1]


def test_of_a_film_without_a_probability_no_passages_are_counted():
    nothing = invented_film(unlike_parts=((0.0, 1.0),), **SMALL)
    assert figures(nothing)[1][0] == "–"
    assert not any("passage" in line for line in lines_of_film(nothing, Words("en")))


def test_a_passage_that_goes_on_over_what_is_not_judged_says_how_much_of_it_is():
    """One row within the longest passage gets no probability, of a length over which a passage goes on."""
    film = invented_film()
    rows, passages = film.rows(), film.segments().query("reaches == 1")
    longest = passages.sort_values("judged_s").iloc[-1]
    within = rows[(rows["start_s"] > longest["start_s"]) & (rows["end_s"] < longest["end_s"])]
    # Passages go on over up to 5 s; what is left out is said from half a second on.
    bridged_rows = within[(within["end_s"] - within["start_s"]).between(0.6, 4.9)]
    row = bridged_rows.index[len(bridged_rows) // 2]
    table = film.table.copy()
    table.loc[row, ["p", "p_low", "p_high", "flags"]] = [np.nan, np.nan, np.nan, "unlike"]
    bridged = film_of(film, table=table)
    found = bridged.segments()
    is_bridged = found["judged_s"] < found["end_s"] - found["start_s"] - 0.5
    (passage,) = found[is_bridged].to_dict("records")
    words = Words("en")
    length = words.duration(passage["end_s"] - passage["start_s"])
    judged = words.duration(passage["judged_s"])
    lengths = [one["length"] for one in data_of(film_page([bridged]))["passages"]]
    assert f"{length}, {judged} of it judged" in lengths


@pytest.mark.parametrize("language", ["en", "fr"])
def test_a_model_that_may_be_chance_is_said_in_the_heading_and_the_first_line(language):
    words = Words(language)
    film = invented_film(**SMALL)
    shown = EvidenceRecord(n_clips=7, n_movies=4, auc=0.67, auc_low=0.0, auc_high=1.0, p_skilled=0.4)
    doubtful = with_model(film, no_skill=True, evidence=shown)
    assert words["verdict_no_skill"] in heading_of(doubtful, language)
    assert words["verdict_no_skill"] not in heading_of(film, language)
    line = evidence_line(doubtful, language)
    assert {words.number(0.67), "7", "4"} <= set(re.findall(r"[\d.,]*\d", line))
    page = film_page([doubtful], language=language)
    assert line in page
    assert page.index(line) < page.index('class="d-desk"')


@pytest.mark.parametrize(("window_s", "warns"), [(10.0, 0), (11.0, 0), (11.5, 1), (8.5, 1)])
def test_windows_unlike_the_clips_trained_on_by_more_than_a_tenth_are_warned_of(window_s, warns):
    film = with_model(invented_film(**SMALL), clip_s=10.0)
    windows = replace(film.record.windows, window_s=window_s)
    assert len(warnings(film_of(film, record=replace(film.record, windows=windows)))) == warns


def test_concepts_whose_precision_a_record_lacks_say_that_it_is_unknown():
    film, words = invented_film(**SMALL), Words("en")
    concepts = [replace(concept, ap=None) for concept in film.model().concepts]
    page = film_page([with_model(film, concepts=concepts)])
    strips = page.split('class="d-strips"')[1].split("</section>")[0]
    assert strips.count(f"<small>{words['unknown_ap']}</small>") == len(concepts)


def test_figures_of_a_record_that_lacks_numbers_leave_them_out():
    film = invented_film(**SMALL)
    share, passages, _ = figures(film)
    n_reaching = (film.segments()["reaches"] == 1).sum()
    assert re.findall(r"\d+", passages[0]) == [str(n_reaching)]
    _, without_threshold, _ = figures(with_model(film, threshold_p=None))
    _, without_calibration, _ = figures(with_model(film, calibration=None))
    assert without_threshold == without_calibration != passages
    calibration = replace(film.model().calibration, worst_film_error=None)
    assert figures(with_model(film, calibration=calibration))[0][0] == share[0]


def test_concepts_that_are_not_found_are_grey_and_come_last():
    """Of the eight of `CONCEPTS` the tests of the model show five to be found better than chance."""
    page = film_page([invented_film(**SMALL)])
    assert Words("en").say("legend_unfound", n=3) in page
    shown, grey = page.split('<div class="dim">')
    assert "AP 0.55, chance 0.21" in shown  # Body
    assert "AP 0.28, chance 0.26" in grey  # Look
    concepts = data_of(page)["rows"]["concepts"]
    assert [concept["found"] for concept in concepts] == [True] * 5 + [False] * 3
    names = [concept["name"] for concept in concepts]
    assert names[:2] == ["Body", "Clothing"]
    assert set(names[5:]) == {"Look", "Posture", "Appearance"}


def test_no_probability_below_a_concepts_threshold_is_rounded_to_it():
    """The script has whole percentages: .896 is 90 of them, and does not reach a threshold of .9."""
    film = invented_film(**SMALL)
    film = with_model(film, concepts=[replace(one, threshold_p=0.9) for one in film.model().concepts])
    concepts = data_of(film_page([film]))["rows"]["concepts"]
    assert {concept["seen"] for concept in concepts} == {91}


def test_several_films_stand_by_year_and_never_by_rate():
    films = [
        invented_film("a", "A", year=2009, seed=1, **SMALL),
        invented_film("b", "B", year=1989, seed=2, **SMALL),
        invented_film("c", "C", year=None, seed=3, **SMALL),
        invented_film("d", "D", year=1999, seed=4, trained_on=True, **SMALL),
    ]
    page = film_page(films)
    assert re.findall(r'<a href="#f\d">[^<]*?(?: \((\d{4})\))?</a>', page) == ["1989", "1999", "2009", ""]
    assert page == film_page(films[::-1])


def test_another_codebook_gives_the_models_own_levels_and_concepts():
    film = invented_film(
        codebook="violence", levels=(("calm",), ("violent",)), concepts=(("Gun", 0.9, 0.4),), **SMALL
    )
    page = film_page([film])
    assert "of violent" in text_of(page)
    assert "Sure" not in text_of(page)


def test_a_page_says_whether_frames_of_the_film_are_in_it():
    film, words = invented_film(**SMALL), Words("en")
    layout = {"starts": [0.0], "width": 96, "height": 54, "columns": 40}
    stills = {"sheet": "data:image/webp;base64,AAAA", **layout}
    owned = {film.movie: Owned(copy=ScoredCopy(600.0, 24.0, "key", stills))}
    with_stills, without = film_page([film], owned=owned), film_page([film])
    assert words["has_stills"] in with_stills
    assert words["no_frames"] not in with_stills
    assert "f1-stills" in with_stills
    assert words["no_frames"] in without
    assert "f1-stills" not in without


# --- charts and words
# ---------------------------------------------------------------------------
def drawn(path):
    """Follow a step path: its corners."""
    x = y = 0
    corners = []
    for letter, numbers in re.findall(r"([MHVZ])([\d. ]*)", path):
        if letter == "M":
            x, y = map(int, numbers.split())
        elif letter == "H":
            x = int(numbers)
        elif letter == "V":
            y = int(numbers)
        corners.append((x, y))
    return corners


def test_the_line_goes_through_every_probability_and_breaks_where_there_is_none():
    rows = invented_film(**SMALL).rows()
    path = charts.line(rows)
    assert path.count("M") == 1
    found = drawn(path)
    there = rows[rows["p"].notna()]
    assert found[0] == (round(10 * there["start_s"].iloc[0]), 100 - round(100 * there["p"].iloc[0]))
    assert found[-1][0] == round(10 * there["end_s"].iloc[-1])
    levels = {100 - round(100 * p) for p in there["p"]}
    assert {y for _, y in found} == levels
    rows.loc[30, "p"] = np.nan
    assert charts.line(rows).count("M") == 2


def why(parts, words, vague=""):
    """What is said of the concepts of a passage, by a model of which one is found no better than chance."""
    known = [
        replace(one, name=vague) for one in invented_film(**SMALL).model().concepts if one.is_near_chance
    ]
    model = replace(invented_film(**SMALL).model(), concepts=known[:1] if vague else [])
    return reasons_sentence(passage_reasons(model, parts, ClaimTime("span", 10.0, 0.0, 10.0)), words)


def reason(name, change, *, amount="more", p=0.5, usual_p=0.2):
    return Reason(name, p, np.sign(change), is_present=p > 0.4, usual_p=usual_p, amount=amount, change=change)


PARTED = Words("en").say("why_parted", p="0.30", usual="0.20")


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([reason("Look", 0.3)], "For it: more Look than usual (0.50, 0.20 at its usual value)."),
        (
            [reason("Look", 0.3, p=0.33, usual_p=0.18), reason("Body", 0.1, amount="less", p=0.1)],
            (
                "For it: more Look than usual (0.33, 0.18 at its usual value); "
                "less Body than usual (0.10, 0.20 at its usual value)."
            ),
        ),
        (
            [reason("Body", -0.3), reason("Look", 0.1, amount="less", p=0.3)],
            # Means of the two scales part: it is said of which the words are.
            (
                f"For it: less Look than usual ({PARTED}). "
                "Against it: more Body than usual (0.50, 0.20 at its usual value)."
            ),
        ),
        (
            [reason("Body", 0.009), reason("Look", -0.01)],
            "Against it: more Look than usual (0.50, 0.20 at its usual value).",
        ),
        ([reason("Body", 0.009)], "No concept moves the probability by 0.01."),
        (
            [reason("Vague", 0.2, p=0.204)],
            "For it: more Vague than usual (not shown to be found better than chance).",
        ),
        (
            [Reason("A", 0.9, 1.0, is_present=True), Reason("B", 0.1, -1.0, is_present=False)],
            "For it: A. Against it: B.",
        ),
        ([], ""),
    ],
)
def test_a_reason_has_two_signs_and_its_doubt(parts, said):
    assert why(parts, Words("en"), "Vague") == said


@pytest.mark.parametrize("seed", range(3))
def test_the_direction_of_each_reason_is_that_of_the_probability(seed):
    """Moved to its usual value, a concept that spoke for a passage lowers its probability."""
    film = invented_film(seed=seed, **SMALL)
    model, rows = film.model(), film.rows()
    n_reasons = 0
    for row in film.segments().to_dict(orient="records"):
        inside = rows[(rows["start_s"] >= row["start_s"]) & (rows["end_s"] <= row["end_s"])]
        inside = inside[inside["p"].notna()]
        weights = (inside["end_s"] - inside["start_s"]).to_numpy()
        draws = np.array(model.calibration.draws)
        for part in reasons(row):
            moved = inside["logit"] - inside[f"{part.concept}_contribution"]
            p, at_usual = (
                np.average(mean_probability(draws, logits.to_numpy()), weights=weights)
                for logits in (inside["logit"], moved)
            )
            assert part.change == pytest.approx(p - at_usual, abs=1e-4)
            assert part.is_for == (p > at_usual) or abs(p - at_usual) < 1e-4
            value = np.average(inside[f"{part.concept}_value"], weights=weights)
            if part.amount != "mixed":
                assert part.amount == ("more" if value > 0 else "less")
            sentence = why([part], Words("en"))
            if part.moves:
                assert sentence.startswith("For it" if p > at_usual else "Against it")
                assert Words("en").say(f"why_{part.amount}", concept=part.concept) in sentence
                n_reasons += 1
            else:
                assert part.concept not in sentence
    assert n_reasons > 10


def test_words_of_numbers():
    english, french = Words("en"), Words("fr")
    assert (english.number(0.125), french.number(0.5)) == ("0.13", "0,50")
    assert [english.signed(value) for value in (1.449, -0.1, -0.001)] == ["+1.45", "−0.10", "0.00"]
    assert [english.share(value) for value in (0, 0.001, 0.165)] == ["0%", "<1%", "17%"]
    assert [clock(seconds) for seconds in (3661.4, 3661.5, 3661.9999)] == ["1:01:01", "1:01:02", "1:01:02"]
    assert [english.duration(seconds) for seconds in (599.0, 600.0)] == ["599 s", "10 minutes"]
    assert english.durations(6000.0, 77.0, 0.0) == ["100.0 minutes", "1.3 minutes", "0 minutes"]


# --- files, commands
# ---------------------------------------------------------------------------


def test_an_end_that_rounds_to_no_hundredth_is_written_as_below_one():
    words = Words("en")
    assert words.band(0.005, 0.2, " to ") == "0.01 to 0.20"
    assert words.band(0.004, 0.2, " to ") == "<0.01 to 0.20"
    assert words.band(0.001, 0.005, " to ") == "<0.01 to 0.01"
    assert words.band(0.001, 0.004, " to ") == ""  # neither end is a number that one could read
    assert words.spoken(0.0, 0.0, 0.005) != words.spoken(0.0, 0.0, 0.004)


def test_a_concept_that_contributes_nothing_is_no_reason():
    without = Reason("Body", p=0.1, contribution=0.0, is_present=False)
    contributing = Reason("Look", p=0.1, contribution=0.4, is_present=False)
    said = why([without, contributing], Words("en"))
    assert "Body" not in said
    assert "Look" in said


def test_no_class_of_the_films_styles_is_one_of_the_reports():
    """Both are in one page: a rule of one would style what is the other's."""

    def classes(text):
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
        return set(re.findall(r"\.(-?[a-zA-Z][\w-]*)(?=[^{}]*{)", text))

    reports = classes(asset("page.css")) - {"facts", "n"}  # of elements that films style by their place
    own = [classes(asset(f"{name}.css", "obygaze_film.page")) for name in ("film", "desk", "figures")]
    assert len(reports) > 8
    assert [found & reports for found in own] == [set()] * 3
    assert own[1] & own[2] == set()


def test_a_figure_shows_the_span_with_half_a_minute_around_it():
    view = FilmView(invented_film(**SMALL), "f1", Words("en"), top=5)
    figure = str(film_figure(view, 100.0, 400.0))
    minidom.parseString(figure)  # noqa: S318 - ours, and well-formed
    assert set(re.findall(r'viewBox="(\d+) 0 (\d+) \d+" preserve', figure)) == {("700", "3600")}
    assert "0:01:40–0:06:40" in figure
    assert all(f">{concept.name}</text>" in figure for concept, *_ in view.concepts if concept.is_found)
    assert "http" not in figure.replace("http://www.w3.org/2000/svg", "")


@pytest.mark.parametrize("ends", [(0.0, 1e9), (590.0, 700.0), (1e6, 1e9)])
def test_a_figure_ends_with_its_film(ends):
    view = FilmView(invented_film(**SMALL), "f1", Words("en"), top=5)
    figure = str(film_figure(view, *ends))
    for start, length in re.findall(r'viewBox="(\d+) 0 (\d+) \d+" preserve', figure):
        assert int(start) + int(length) == 6000
    times = re.findall(r">(\d):(\d\d):(\d\d)</text>", figure)
    assert 0 < len(times) <= 8
    assert all(3600 * int(h) + 60 * int(m) + int(s) <= 600 for h, m, s in times)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", [name for name in sorted(BUILTIN) if builtin_codebook(name).concepts])
def test_no_name_of_a_concept_is_cut_in_a_figure(name, language):
    longest = max(
        builtin_codebook(name).concepts, key=lambda concept: text_width(concept.in_language(language).title)
    )
    film = invented_film(concepts=((longest.name, 0.9, 0.1),), codebook=name, **SMALL)
    film.model().concepts[:] = [replace(one, low=0.5) for one in film.model().concepts]
    figure = str(film_figure(FilmView(film, "f1", Words(language), top=5), 100.0, 200.0))
    title = re.escape(escape(longest.in_language(language).title))
    ((x, shown),) = re.findall(rf'<text class="c-end" x="([\d.]+)" y="[\d.]+">({title})<', figure)
    assert float(x) - text_width(shown) >= 0


@pytest.mark.parametrize(
    ("duration_s", "title"), [(600.0, "Short"), (600.0, "A Very Long Title " * 12), (12 * 3600.0, "Long")]
)
@pytest.mark.parametrize("who", ["AB", "A name as long as the desk takes it, of " + 40 * "M"])
def test_no_text_of_a_figure_is_cut_and_no_times_touch(duration_s, title, who):
    film = invented_film(title=title, n_rows=60, duration_s=duration_s)
    view = FilmView(film, "f1", Words("en"), top=5)
    decided = [Decided(duration_s - 40, duration_s - 10, (who,), level="S", is_blind=True)]
    figure = str(film_figure(view, duration_s - 30, duration_s, decisions_data(decided, view)))
    (width,) = map(float, re.findall(r'viewBox="0 0 ([\d.]+)', figure))
    right_of_time = 0.0
    for kind, left, text in re.findall(r'<text class="([\w-]+)" x="([\d.]+)" y="[\d.]+">([^<]*)<', figure):
        share_on_the_left = {"c-start": 0.0, "c-middle": 0.5, "c-end": 1.0}[kind]
        start = float(left) - share_on_the_left * text_width(unescape(text))
        end = start + text_width(unescape(text))
        assert start >= 0, text
        assert end <= width, text
        if kind == "c-middle":
            assert start > right_of_time
            right_of_time = end
    assert unescape(figure).count(who) == 1
    assert right_of_time > 0


def test_a_figure_says_who_decided_what_and_draws_the_threshold():
    film = invented_film(**SMALL)
    view = FilmView(film, "f1", Words("en"), top=5)
    decided = [
        Decided(120.0, 150.0, ("AB",), level="S", is_blind=True),
        Decided(500.0, 510.0, ("CD",), level="S"),
    ]
    figure = str(film_figure(view, 100.0, 160.0, decisions_data(decided, view)))
    assert "S (Sure), AB (blind)" in figure
    assert "CD" not in figure  # it is elsewhere
    assert 'class="c-threshold"' in figure


class GreyStills:
    """Stills of 96 by 54 pixels; each says its time by its grey."""

    width, height = 96, 54

    def address(self, at_s):
        file = io.BytesIO()
        Image.new("L", (self.width, self.height), int(at_s) % 256).save(file, "PNG")
        return f"data:image/png;base64,{b64encode(file.getvalue()).decode()}"


def test_a_figure_has_a_strip_of_stills_where_the_owner_has_the_film():
    view = FilmView(invented_film(**SMALL), "f1", Words("en"), top=5)
    figure = minidom.parseString(film_figure(view, 100.0, 160.0, stills=GreyStills()))  # noqa: S318 - ours
    stills = figure.getElementsByTagName("image")
    assert len(stills) > 4
    ends = [float(still.getAttribute("x")) + float(still.getAttribute("width")) for still in stills]
    assert max(ends) <= 760
    greys = [
        Image.open(io.BytesIO(b64decode(still.getAttribute("href").partition(",")[2]))).getpixel((0, 0))
        for still in stills
    ]
    assert greys == sorted(greys)
    assert 70 <= greys[0] < greys[-1] <= 190
    assert "<image" not in film_figure(view, 100.0, 160.0)


def test_a_figure_is_written_as_pdf_with_its_texts_and_size():
    pytest.importorskip("matplotlib")
    view = FilmView(invented_film(**SMALL), "f1", Words("fr"), top=5)
    figure = str(film_figure(view, 100.0, 160.0, stills=GreyStills()))
    pdf = figure_pdf(figure)
    high = float(re.search(r'viewBox="0 0 760 (\d+)"', figure)[1])
    assert pdf.startswith(b"%PDF-")
    assert pdf == figure_pdf(figure)
    box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+) ([\d.]+) ?\]", pdf)
    assert (float(box[1]), float(box[2])) == pytest.approx((760 * 0.75, high * 0.75))
    assert b"DejaVuSans" in pdf  # embedded: journals refuse fonts that are not
    assert b"/FontFile2" in pdf


def test_pages_have_no_word_of_a_codebook_in_another_language():
    """Names of concepts, titles and meanings of levels: those that the two languages do not share."""
    book = builtin_codebook("obygaze12")
    told = {
        language: {part.in_language(language).title for part in (*book.levels, *book.concepts)}
        for language in LANGUAGES
    }
    film = with_model(invented_film(traced=True, **SMALL), means=book.means, construct=book.construct)
    decided = [Decided(120.0, 150.0, ("AB",), level="S", concepts=("Clothing",))]
    for language, other in (LANGUAGES, LANGUAGES[::-1]):
        page = film_page([film], language=language, owned={film.movie: Owned(people=decided)})
        data = json.dumps(data_of(page), ensure_ascii=False)
        assert any(name in data for name in told[language] - told[other])
        for name in told[other] - told[language]:
            assert not re.search(rf"\b{name}\b", text_of(page)), name
            assert not re.search(rf"\b{name}\b", data), name
        for level in book.levels:
            assert level.in_language(other).means not in text_of(page)
    assert "mis en scène comme ceux" in text_of(film_page([film], language="fr"))


# --- minute by minute
# ---------------------------------------------------------------------------
def seconds_film(judged_in_minutes):
    """Plant a film of rows of a second, with so many judged seconds at the end of each minute."""
    n_rows = 60 * len(judged_in_minutes)
    film = invented_film(n_rows=n_rows, duration_s=float(n_rows), unlike_parts=())
    draws = [(0.3, -1.0), (0.9, -0.4), (2.0, 0.3)]
    table = film.table.assign(start_s=np.arange(n_rows) * 1.0, end_s=np.arange(1, n_rows + 1) * 1.0, flags="")
    p = mean_probability(np.array(draws), table["logit"].to_numpy())
    table["p"], table["p_low"], table["p_high"] = p, 0.5 * p, 0.5 * (1 + p)
    for minute, judged in enumerate(judged_in_minutes):
        without = slice(60 * minute, 60 * minute + 59 - judged)
        table.loc[without, ["p", "p_low", "p_high"]] = np.nan
        table.loc[without, "flags"] = "unlike"
    calibration = replace(film.model().calibration, draws=draws)
    return with_model(film_of(film, table=table), calibration=calibration)


def test_a_minute_has_a_number_from_ten_judged_seconds_on_and_says_how_many_were_judged():
    judged = [0, 5, 20, 60]
    film = seconds_film(judged)
    minutes = FilmView(film, "f", Words("en"), top=20).minutes
    assert [minute.judged_s for minute in minutes] == judged
    assert [bool(np.isnan(minute.p)) for minute in minutes] == [True, True, False, False]
    # `seconds_film` leaves concepts their values where the model decides nothing.
    assert [bool(np.isnan(minute.concepts).all()) for minute in minutes] == [False] * 4
    packed = data_of(film_page([film]))["minutes"]
    assert percentages_of(packed["p"])[:2] == [-1, -1]
    assert np.frombuffer(b64decode(packed["judged"]), "<u2").tolist() == judged


def test_a_last_minute_of_less_than_ten_seconds_has_no_number():
    film = invented_film(n_rows=61, duration_s=60.9, unlike_parts=())
    film = film_of(film, table=film.table.assign(flags="", p=0.5, p_low=0.4, p_high=0.6))
    first, last = FilmView(film, "f", Words("en"), top=20).minutes
    assert last.judged_s == pytest.approx(0.9)
    assert [np.isnan(minute.p) for minute in (first, last)] == [False, True]
    assert np.isnan(last.concepts).all()


def test_whose_labels_a_model_learnt_is_not_made_up():
    """Experts of one school labelled one corpus; a model of planted levels learnt no labels of theirs."""
    film = with_model(invented_film(**SMALL), human=None)
    for language in LANGUAGES:
        words = Words(language)
        page = text_of(film_page([film], language=language)).replace(words["no_human"], "")
        assert "expert" not in page
    for kind in ("vtt", "csv"):
        assert "expert" not in export(film, kind)


def band_by_hand(film, rows):
    """The band of a mean: the mean by each draw of the calibration, and its quantiles."""
    draws = np.array(film.model().calibration.draws)
    weights = (rows["end_s"] - rows["start_s"]).to_numpy()
    means = []
    for slope, intercept in draws:
        p = 1 / (1 + np.exp(-(slope * rows["logit"].to_numpy() + intercept)))
        means.append(np.average(p, weights=weights))
    return np.quantile(means, [0.1, 0.9])


def test_the_band_of_a_minute_and_of_a_passage_is_that_of_its_mean():
    film = seconds_film([60] * 6)
    rows = film.rows()
    minutes = FilmView(film, "f", Words("en"), top=20).minutes
    for minute in minutes:
        inside = rows[(rows["start_s"] >= minute.start_s) & (rows["end_s"] <= minute.start_s + 60)]
        assert (minute.p_low, minute.p_high) == pytest.approx(tuple(band_by_hand(film, inside)))
    segments = film.segments()
    assert len(segments)
    for row in segments.to_dict("records"):
        inside = rows[(rows["start_s"] >= row["start_s"]) & (rows["end_s"] <= row["end_s"])]
        assert (row["p_low"], row["p_high"]) == pytest.approx(tuple(band_by_hand(film, inside)))


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_concept_below_its_threshold_is_not_called_absent(language):
    """What a model doesn't find may be there all the same: the page says "not seen, 0.12"."""
    not_seen, _ = Words(language)["not_seen"].split(",")
    film = invented_film(**SMALL)
    passages = film.rows().dropna(subset="p")
    assert any((passages[f"{one.name}_p"] < one.threshold_p).any() for one in film.model().concepts)
    page = film_page([film], language=language)
    assert not_seen in page
    assert "absent" not in text_of(page)


def test_the_figure_of_a_film_says_what_its_curve_and_band_are():
    film = invented_film(**SMALL)
    for language in LANGUAGES:
        view = FilmView(film, "f", Words(language), top=20)
        figure = film_figure(view, 0.0, 60.0)
        for told in (view.positive, film.model().title, "80", view.words.number(film.model().threshold_p)):
            assert figure.count(told) >= 2  # it is drawn, and it is the picture's name
