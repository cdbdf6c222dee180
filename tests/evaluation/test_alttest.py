"""The alternative annotator test: the published values, films as units, and machines that know nothing."""

import re

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from obygaze_features.manifest import Clip, Manifest, write_manifest
from obygaze_features.manifest.agreement import on_common_clips
from obygaze_models.errors import ProtocolError
from obygaze_models.evaluation.alttest import FORMS, MARGINS, UNKNOWN, alt_test, compare_machines
from tests.command import obygaze

# Counts of what four annotators (-: did not judge) and a model answered to 2,552 questions about news:
# nitaytech/AltTest, data/framing; its notebook prints winning rate and advantage probability at .15.
FRAMING = {
    "gpt-4o": """-nnnn:138 -nnny:12 -nnyn:14 -nnyy:3 -nynn:10 -nyny:8 -nyyn:4 -nyyy:16 -xnnn:1 -ynnn:10
        -ynny:7 -ynyn:7 -ynyy:2 -yynn:10 -yyny:11 -yyyn:20 -yyyy:79 nn-nn:98 nn-ny:8 nn-yn:9 nn-yy:3 nnn-n:749
        nnn-y:54 nny-n:53 nny-y:35 ny-nn:21 ny-ny:5 ny-yn:12 ny-yy:14 nyn-n:106 nyn-y:34 nyy-n:66
        nyy-y:59 xxn-n:1 xyn-n:1 yn-nn:7 yn-ny:3 yn-yy:11 ynn-n:41 ynn-y:28 yny-n:25 yny-y:51 yxn-n:2
        yxy-n:1 yy-nn:7 yy-ny:12 yy-yn:15 yy-yy:61 yyn-n:53 yyn-y:48 yyx-n:1 yyy-n:97 yyy-y:409""",
    "mistral-v03": """-nnnn:104 -nnny:46 -nnyn:11 -nnyy:6 -nynn:11 -nyny:7 -nyyn:6 -nyyy:14 -xnnn:1 -ynnn:13
        -ynny:4 -ynyn:6 -ynyy:3 -yynn:8 -yyny:13 -yyyn:34 -yyyy:65 nn-nn:68 nn-ny:38 nn-yn:8 nn-yy:4 nnn-n:626
        nnn-y:177 nny-n:45 nny-y:43 ny-nn:14 ny-ny:12 ny-yn:9 ny-yy:17 nyn-n:90 nyn-y:50 nyy-n:61
        nyy-y:64 xxn-n:1 xyn-n:1 yn-nn:8 yn-ny:2 yn-yn:3 yn-yy:8 ynn-n:39 ynn-y:30 yny-n:30 yny-y:46
        yxn-n:2 yxy-n:1 yy-nn:10 yy-ny:9 yy-yn:30 yy-yy:46 yyn-n:70 yyn-y:31 yyx-n:1 yyy-n:169
        yyy-y:337""",
}
PRINTED = {"gpt-4o": (1.00, 0.92), "mistral-v03": (0.25, 0.80)}


@pytest.mark.parametrize("model", PRINTED)
def test_the_published_example(model):
    calls = [
        [{"-": UNKNOWN, "n": 0, "y": 1, "x": 2}[call] for call in pattern]
        for pattern, count in re.findall(r"(\S+):(\d+)", FRAMING[model])
        for _ in range(int(count))
    ]
    *annotators, machine = np.array(calls).T
    films = np.arange(len(machine)) // 60
    found = alt_test(machine, dict(zip("abcd", annotators, strict=True)), films, model)
    standing = found.standings[0]
    assert (round(standing.winning_rate("clips", 0.15), 2), round(standing.advantage, 2)) == PRINTED[model]


def world(seed, skills, machine, films=20, clips=60, share=0.3):
    rng = np.random.default_rng(seed)
    n = films * clips
    y = (rng.random(n) < share).astype(np.int64)
    said = [np.where(rng.random(n) < skill, y, 1 - y) for skill in (*skills, machine)]
    return said[-1], {f"h{k}": calls for k, calls in enumerate(said[:-1])}, np.repeat(np.arange(films), clips)


def test_with_a_clip_a_film_the_clustered_test_is_the_published_one():
    machine, annotators, _ = world(0, (0.8, 0.8, 0.7), 0.7, films=400, clips=1)
    found = alt_test(machine, annotators, np.arange(400)).standings[0]
    for margin in MARGINS:
        assert found.p("films", margin) == pytest.approx(found.p("clips", margin))
    first, *rest = annotators.values()
    below = np.sign(sum((first == other).astype(int) - (machine == other) for other in rest))
    assert found.below("clips") == found.below("films")
    assert found.p("clips", 0.2)[0] == pytest.approx(ttest_1samp(below, 0.2, alternative="less").pvalue)


def test_a_machine_as_good_as_annotators_may_stand_in_and_one_that_knows_nothing_may_not():
    machine, annotators, films = world(1, (0.8, 0.8, 0.8), 0.8)
    good = alt_test(machine, annotators, films, "constant")
    assert [standing.name for standing in good.standings] == ["constant", "constant", "shuffled"]
    assert good.answer == "may stand in"
    no = alt_test(np.zeros_like(machine), annotators, films)
    assert no.standings[0].winning_rate("clips", 0.2) == 1  # lax on unequal classes
    assert no.answer == "not shown that it may stand in"


def test_the_order_of_clips_decides_nothing():
    machine, annotators, films = world(0, (0.8, 0.8, 0.7), 0.7)
    order = np.random.default_rng(1).permutation(len(machine))
    again = alt_test(machine[order], {name: own[order] for name, own in annotators.items()}, films[order])
    for one, other in zip(alt_test(machine, annotators, films).standings, again.standings, strict=True):
        for form in FORMS:
            assert one.p(form, 0.1) == pytest.approx(other.p(form, 0.1))


def test_where_annotators_hardly_agree_nothing_can_be_told():
    machine, annotators, films = world(2, (0.55, 0.55, 0.55), 0.55)
    assert alt_test(machine, annotators, films).answer == "these annotators agree too little to tell"


def test_nothing_is_told_where_a_machine_that_always_says_one_thing_would_do_as_well():
    """Annotators agree on films, not on clips; the machine on clips, and on films it says the opposite.

    Its answers in another order within films are worse than any one answer, which alone may stand in.
    """
    rng = np.random.default_rng(6)
    films = np.repeat(np.arange(40), 60)
    is_often = films % 2 == 0
    chance = np.where(is_often, 0.65, 0.35)
    annotators = {name: (rng.random(len(films)) < chance).astype(np.int64) for name in ("h0", "h1")}
    both_say_often = (annotators["h0"] == is_often) & (annotators["h1"] == is_often)
    says_often = both_say_often & (rng.random(len(films)) < 0.6)
    machine = np.where(says_often, is_often, ~is_often).astype(np.int64)
    found = alt_test(machine, annotators, films)
    assert [standing.passes for standing in found.standings] == [True, True, False]
    assert found.answer == "these annotators agree too little to tell"


def test_clips_that_one_annotator_or_no_machine_judged_do_not_count():
    machine, annotators, films = world(3, (0.8, 0.8, 0.8), 0.8)
    for place, calls in enumerate(annotators.values()):
        calls[place * 20 : place * 20 + 20] = UNKNOWN
    machine[-30:] = UNKNOWN
    annotators["new"] = np.full_like(machine, UNKNOWN)
    annotators["new"][:10] = 1
    found = alt_test(machine, annotators, films)
    assert found.annotators == dict.fromkeys(("h0", "h1", "h2"), len(machine) - 50)
    with pytest.raises(ProtocolError, match="two annotators"):
        alt_test(machine, {"h0": annotators["h0"]}, films)
    with pytest.raises(ProtocolError, match="all clips alike"):
        alt_test(machine, {name: np.ones_like(machine) for name in ("h0", "h1")}, films)


def test_a_machine_is_known_in_any_accents_and_one_alone_is_refused(tmp_path):
    own = Manifest(tuple(Clip(f"c{k}", "m", "", k, k + 1, "S", (), "é") for k in range(40)), tmp_path)
    with pytest.raises(ProtocolError, match="there are none"):
        compare_machines(own, own, ["e\u0301"])


@pytest.mark.parametrize("name", ["c{k}", "{who}-c{k}"])
def test_a_machine_is_compared_with_people_alone(tmp_path, name):
    """Clips go together by their spans, also where each annotator has ids of their own."""
    machine, annotators, films = world(5, (0.8, 0.8), 0.8)
    calls = annotators | {"one": machine, "other": 1 - machine}
    clips = [
        Clip(name.format(k=k, who=who), f"f{films[k]:02}", "", k, k + 1, ("EN", "S")[own[k]], (), who,
             {"model": who if who in {"one", "other"} else ""})
        for who, own in calls.items()
        for k in range(len(films))
    ]  # fmt: skip
    judged = Manifest(tuple(clips), tmp_path)
    common, _ = on_common_clips(judged)
    found = compare_machines(judged, common)
    assert list(found) == ["one", "other"]
    assert [list(each.annotators) for each in found.values()] == [["h0", "h1"]] * 2
    assert compare_machines(judged, common, ["one"])["one"].annotators == found["one"].annotators
    as_given = alt_test(machine, annotators, films).standings[0]
    assert found["one"].standings[0].by_form["films"] == pytest.approx(as_given.by_form["films"])


def test_more_classes_are_balanced_alike():
    rng = np.random.default_rng(4)
    y = rng.choice(3, 1200, p=(0.8, 0.1, 0.1))
    said = [np.where(rng.random(1200) < 0.8, y, rng.integers(0, 3, 1200)) for _ in range(4)]
    found = alt_test(said[0], dict(zip("abc", said[1:], strict=True)), np.arange(1200) // 60)
    assert set(found.standings[0].by_form) == set(FORMS)
    assert abs(found.standings[0].below("balanced")) < 0.05
    assert found.standings[1].below("balanced") > 0.2


@pytest.mark.parametrize("command", ["alttest", "agreement", "disagreements"])
def test_a_person_in_two_spellings_is_not_compared_with_themself(tmp_path, capsys, command):
    rows = [f"c{k},m,,{4 * k},{4 * k + 4},S,,{who}" for k in range(3) for who in ("AB", "ab")]
    table = tmp_path / "a.csv"
    table.write_text("\n".join(["clip_id,movie,video,start_s,end_s,level,concepts,annotator", *rows, ""]))
    assert obygaze("manifest", command, table) == 1
    error = capsys.readouterr().err
    assert "'AB'" in error
    assert "'ab'" in error


def test_labels_of_whole_files_are_in_no_document_to_decide_in_and_that_is_said(tmp_path, capsys):
    spans = [Clip(f"c{k}", "m", "", *times, level, (), who) for k, times in enumerate(((0, 4), (None, None)))
             for who, level in (("AB", "S"), ("CD", "EN"))]  # fmt: skip
    write_manifest(Manifest(tuple(spans), tmp_path), tmp_path / "a.csv")
    assert obygaze("manifest", "disagreements", tmp_path / "a.csv", "--out", tmp_path / "out") == 0
    assert "2 labels of whole files" in capsys.readouterr().err


def test_a_machine_is_not_compared_on_what_it_cannot_perceive(tmp_path):
    machine, annotators, films = world(5, (0.8, 0.8), 0.8)
    clips = []
    for who, calls in {**annotators, "vlm": machine}.items():
        extras = {"model": "tiny", "perceives": "visual"} if who == "vlm" else {"model": "", "perceives": ""}
        for k, film in enumerate(films):
            concepts = ("Body", "Voice") if calls[k] else ()
            clips.append(Clip(f"c{k}", f"f{film:02}", "", k, k + 1, "S", concepts, who, extras))
    judged = Manifest(tuple(clips), tmp_path)
    common, _ = on_common_clips(judged)
    with pytest.raises(ProtocolError, match="vlm: Voice is heard"):
        compare_machines(judged, common, task="concept:Voice")
    assert list(compare_machines(judged, common, task="concept:Body")) == ["vlm"]
