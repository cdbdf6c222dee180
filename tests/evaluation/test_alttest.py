"""The alternative annotator test: the published values, films as units, and machines that know nothing."""

import re
from dataclasses import dataclass

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


CODE_OF = {"-": UNKNOWN, "n": 0, "y": 1, "x": 2}


def framing_calls(model):
    """Return the calls of the four annotators and of a model on the questions of `FRAMING`, [5, N]."""
    questions = []
    for letters, count in re.findall(r"(\S+):(\d+)", FRAMING[model]):
        calls_on_question = [CODE_OF[letter] for letter in letters]
        questions += int(count) * [calls_on_question]
    return np.array(questions).T


@pytest.mark.parametrize(
    ("model", "printed_winning_rate", "printed_advantage"),
    [("gpt-4o", 1.00, 0.92), ("mistral-v03", 0.25, 0.80)],
)
def test_winning_rate_and_advantage_are_those_printed_by_the_authors(
    model, printed_winning_rate, printed_advantage
):
    """Four annotators and a model answered 2,552 questions about news; the margin is .15.

    Questions are taken as clips. They have no films, and any do, as the published form ignores them.
    """
    a, b, c, d, machine = framing_calls(model)
    films = np.arange(2552) // 60

    result = alt_test(machine, {"a": a, "b": b, "c": c, "d": d}, films, model)

    of_model = result.comparisons[0]
    assert round(of_model.winning_rate("clips", 0.15), 2) == printed_winning_rate
    assert round(of_model.advantage, 2) == printed_advantage


@dataclass(frozen=True)
class Calls:
    """What a machine and annotators call each of N clips: 1 (yes), 0 (no)."""

    machine: np.ndarray  # the machine's calls, [N]
    annotators: dict[str, np.ndarray]  # name (h0, h1, ...) -> calls, [N]
    films: np.ndarray  # number of each clip's film, [N]


def draw_calls(seed, *, skills, machine_skill, n_films=20, n_clips=60):
    """Draw clips of films, 30 % of them positive; each skill is how often somebody is right."""
    rng = np.random.default_rng(seed)
    n = n_films * n_clips
    truth = (rng.random(n) < 0.3).astype(np.int64)
    calls = [np.where(rng.random(n) < skill, truth, 1 - truth) for skill in (*skills, machine_skill)]
    annotators = {f"h{number}": calls[number] for number in range(len(skills))}
    return Calls(calls[-1], annotators, np.repeat(np.arange(n_films), n_clips))


@pytest.fixture(scope="module")
def one_clip_a_film():
    """Calls of three annotators and a machine on 400 films of a single clip."""
    return draw_calls(seed=0, skills=(0.8, 0.8, 0.7), machine_skill=0.7, n_films=400, n_clips=1)


def test_with_one_clip_a_film_the_test_by_films_is_that_by_clips(one_clip_a_film):
    """The published test takes clips as units, ours takes films, as clips of a film are alike.

    Where each film is one clip, both are the same.
    """
    calls = one_clip_a_film

    of_machine = alt_test(calls.machine, calls.annotators, calls.films).comparisons[0]

    assert of_machine.mean_shortfall("clips") == of_machine.mean_shortfall("films")
    for margin in MARGINS:
        assert of_machine.p("films", margin) == pytest.approx(of_machine.p("clips", margin))


def test_with_clips_as_units_the_alt_test_is_a_t_test_of_who_agrees_more(one_clip_a_film):
    """Three annotators, h0, h1 and h2, and a machine call 400 clips. So the test was published.

    Each annotator is left out in turn. On a clip, the machine or this annotator agrees with more of the two
    others: the machine's shortfall is 1 if the annotator does, -1 if the machine does, else 0. Student's test
    of its mean against the margin .2 gives the p of this annotator.
    """
    calls = one_clip_a_film
    margin = 0.2
    h0, h1, h2 = calls.annotators.values()
    expected_p = []
    for left_out, first, second in [(h0, h1, h2), (h1, h0, h2), (h2, h0, h1)]:
        agreements_of_human = (left_out == first).astype(int) + (left_out == second)
        agreements_of_machine = (calls.machine == first).astype(int) + (calls.machine == second)
        shortfall = np.sign(agreements_of_human - agreements_of_machine)
        expected_p.append(ttest_1samp(shortfall, margin, alternative="less").pvalue)

    of_machine, *_of_controls = alt_test(calls.machine, calls.annotators, calls.films).comparisons

    assert of_machine.p("clips", margin) == pytest.approx(expected_p)


@pytest.mark.parametrize("name_of_machine", ["tiny", "constant"])
def test_a_machine_that_is_as_often_right_as_annotators_may_stand_in_for_one(name_of_machine):
    """Three annotators and the machine are right in 80 % of 1200 clips, each on their own.

    Two machines that know nothing are tested beside it: `constant`, which says the same of all clips, and
    `shuffled`, with the machine's labels in random order. A machine that is itself called "constant" must not
    be taken for the former.
    """
    calls = draw_calls(seed=1, skills=(0.8, 0.8, 0.8), machine_skill=0.8)

    result = alt_test(calls.machine, calls.annotators, calls.films, name_of_machine)

    assert [comparison.name for comparison in result.comparisons] == [name_of_machine, "constant", "shuffled"]
    assert result.answer == "may stand in"


def test_a_machine_that_always_says_no_may_not_stand_in():
    """Of 1200 clips 70 % are negative. Three annotators are right in 80 %, and a machine always says no.

    The test as it was published counts clips (with a margin of .2). By it, this machine wins against all
    three annotators, as most clips are negative. The answer must not rest on that form alone: it is no.
    """
    calls = draw_calls(seed=1, skills=(0.8, 0.8, 0.8), machine_skill=0.8)
    always_no = np.zeros(1200, np.int64)

    result = alt_test(always_no, calls.annotators, calls.films)

    assert result.comparisons[0].winning_rate("clips", 0.2) == 1
    assert result.answer == "not shown that it may stand in"


def test_the_order_of_clips_does_not_matter():
    """Three annotators and a machine call 1200 clips. These are shuffled, with what everybody calls them.

    All forms of the test give the same p, here at a margin of .1.
    """
    calls = draw_calls(seed=0, skills=(0.8, 0.8, 0.7), machine_skill=0.7)
    order = np.random.default_rng(1).permutation(1200)
    annotators_in_order = {name: codes[order] for name, codes in calls.annotators.items()}

    result = alt_test(calls.machine, calls.annotators, calls.films)
    reordered = alt_test(calls.machine[order], annotators_in_order, calls.films[order])

    for comparison, same_reordered in zip(result.comparisons, reordered.comparisons, strict=True):
        for form in FORMS:
            assert comparison.p(form, 0.1) == pytest.approx(same_reordered.p(form, 0.1))


def test_there_is_no_answer_where_annotators_hardly_agree():
    """Three annotators and the machine are right in 55 % of the clips, little more than half.

    A machine that knows nothing could stand in for such annotators too.
    """
    calls = draw_calls(seed=2, skills=(0.55, 0.55, 0.55), machine_skill=0.55)
    result = alt_test(calls.machine, calls.annotators, calls.films)
    assert result.answer == "these annotators agree too little to tell"


def calls_that_vary_between_films_only():
    """Annotators and a machine that disagree within films.

    Each annotator gives a clip its film's usual answer, yes or no, in .65 of the clips. The machine gives
    that answer only where both annotators do, and there in .6 of the clips; elsewhere it gives the opposite.
    """
    rng = np.random.default_rng(6)
    films = np.repeat(np.arange(40), 60)
    usual = films % 2 == 0
    p_yes = np.where(usual, 0.65, 0.35)
    annotators = {name: (rng.random(len(films)) < p_yes).astype(np.int64) for name in ("h0", "h1")}
    both_say_usual = (annotators["h0"] == usual) & (annotators["h1"] == usual)
    machine_says_usual = both_say_usual & (rng.random(len(films)) < 0.6)
    machine = np.where(machine_says_usual, usual, ~usual).astype(np.int64)
    return Calls(machine, annotators, films)


def test_a_machine_may_not_stand_in_where_a_machine_that_always_gives_one_answer_passes_like_it():
    """Annotators give most clips of a film one answer, yes or no, and differ at random from it.

    The machine that is tested passes, and so does a control that always gives one answer. That says that
    these annotators agree too little to tell, though another control, the machine's own answers in another
    order within films, does not pass.
    """
    calls = calls_that_vary_between_films_only()

    result = alt_test(calls.machine, calls.annotators, calls.films)

    of_machine, of_constant, of_shuffled = result.comparisons
    assert of_machine.passes
    assert of_constant.name == "constant"
    assert of_constant.passes
    assert of_shuffled.name == "shuffled"
    assert not of_shuffled.passes
    assert result.answer == "these annotators agree too little to tell"


def test_only_clips_that_the_machine_and_two_annotators_judged_count():
    """Each annotator did not judge 20 clips that the others judged, and the machine 30 more, of 1,200.

    A fourth annotator, `new`, judged ten clips, which are too few to be compared.
    """
    calls = draw_calls(seed=3, skills=(0.8, 0.8, 0.8), machine_skill=0.8)
    calls.annotators["h0"][0:20] = UNKNOWN
    calls.annotators["h1"][20:40] = UNKNOWN
    calls.annotators["h2"][40:60] = UNKNOWN
    calls.machine[-30:] = UNKNOWN
    calls_of_new = np.full(1200, UNKNOWN)
    calls_of_new[100:110] = 1

    result = alt_test(calls.machine, {**calls.annotators, "new": calls_of_new}, calls.films)

    n_clips = 1200 - 20 - 30
    assert result.annotators == {"h0": n_clips, "h1": n_clips, "h2": n_clips}


ALWAYS_YES = np.ones(1200, np.int64)
"""Somebody's calls of 1200 clips."""


@pytest.mark.parametrize(
    ("annotators", "message"),
    [({"h0": ALWAYS_YES}, "two annotators"), ({"h0": ALWAYS_YES, "h1": ALWAYS_YES}, "all clips alike")],
    ids=["a single annotator", "annotators who call all clips alike"],
)
def test_annotators_who_cannot_be_compared_are_refused(annotators, message):
    """1200 clips of 20 films, which the machine always calls positive, too."""
    films = np.arange(1200) // 60
    with pytest.raises(ProtocolError, match=message):
        alt_test(ALWAYS_YES, annotators, films)


def test_a_machine_without_annotators_is_refused(tmp_path):
    """All labels are of the annotator é, who is said to be a machine, so that no people are left.

    The name is given with its accent as a sign of its own, which is the same name.
    """
    clips = [Clip(f"c{number}", "m", "", number, number + 1, "S", (), "é") for number in range(40)]
    judged = Manifest(tuple(clips), tmp_path)
    name_of_machine = "e\u0301"
    with pytest.raises(ProtocolError, match="there are none"):
        compare_machines(judged, judged, [name_of_machine])


def rows_of(annotator, codes, films, *, clip_id, model=""):
    """Make somebody's rows of a manifest: clips of a second each, S where they say yes, else EN."""
    clips = []
    for k, (code, film) in enumerate(zip(codes, films, strict=True)):
        name = clip_id.format(k=k, annotator=annotator)
        level = "S" if code else "EN"
        clips.append(Clip(name, f"f{film:02}", "", k, k + 1, level, (), annotator, {"model": model}))
    return clips


@pytest.mark.long
@pytest.mark.parametrize(
    "clip_id", ["c{k}", "{annotator}-c{k}"], ids=["same ids for all", "ids of each annotator"]
)
def test_machines_are_compared_with_people_alone(tmp_path, clip_id):
    """Two people, h0 and h1, and two machines judge 1,200 clips: `vlm`, and `opposite`, which contradicts it.

    Each machine must be compared with h0 and h1, and not with the other machine: `vlm` then has the result
    that it has if h0 and h1 are all that there is. So it is if `vlm` alone is asked for. Rows of one clip go
    together by their film and span, also if each annotator has ids of their own.
    """
    calls = draw_calls(seed=5, skills=(0.8, 0.8), machine_skill=0.8)
    calls_of_machine = {"opposite": 1 - calls.machine, "vlm": calls.machine}
    clips = []
    for person, calls_of_person in calls.annotators.items():
        clips += rows_of(person, calls_of_person, calls.films, clip_id=clip_id)
    for machine, its_calls in calls_of_machine.items():
        clips += rows_of(machine, its_calls, calls.films, clip_id=clip_id, model=machine)
    judged = Manifest(tuple(clips), tmp_path)
    common, _ = on_common_clips(judged)

    results = compare_machines(judged, common)

    assert list(results) == ["opposite", "vlm"]
    assert list(results["opposite"].annotators) == ["h0", "h1"]
    assert list(results["vlm"].annotators) == ["h0", "h1"]
    # The first comparison is the machine's, those after it are of controls.
    with_people_only, *_ = alt_test(calls.machine, calls.annotators, calls.films).comparisons
    of_vlm, *_ = results["vlm"].comparisons
    shortfall = of_vlm.by_form["films"]
    assert shortfall.mean == pytest.approx(with_people_only.by_form["films"].mean)
    assert shortfall.error == pytest.approx(with_people_only.by_form["films"].error)
    vlm_alone = compare_machines(judged, common, ["vlm"])
    assert vlm_alone["vlm"].annotators == results["vlm"].annotators


def calls_that_are_right_in_four_of_five_clips(truth, rng):
    """Name the true class with probability .8, and else one of three by chance."""
    is_right = rng.random(1200) < 0.8
    return np.where(is_right, truth, rng.integers(0, 3, 1200))


def test_a_constant_machine_falls_short_if_classes_weigh_alike():
    """Of 1200 clips 80 % are of one class and 10 % of each of two others.

    A machine and three people are right in four of five clips. "constant", which always names the largest
    class, is right in as many. The balanced form of the test weighs classes alike: there "constant" is right
    in 1/3, and falls far short of the people. The machine does not, but for chance (.05).
    """
    rng = np.random.default_rng(4)
    truth = rng.choice(3, 1200, p=(0.8, 0.1, 0.1))
    machine, h0, h1, h2 = [calls_that_are_right_in_four_of_five_clips(truth, rng) for _ in range(4)]
    films = np.arange(1200) // 60

    result = alt_test(machine, {"h0": h0, "h1": h1, "h2": h2}, films)

    of_machine, of_constant, *_ = result.comparisons
    assert abs(of_machine.mean_shortfall("balanced")) < 0.05
    assert of_constant.name == "constant"
    assert of_constant.mean_shortfall("balanced") > 0.2


def test_labels_of_whole_files_are_left_out_of_documents_and_counted(tmp_path, capsys):
    """The command writes what AB and CD differ on as documents of ELAN, which show spans.

    They differ on a span, and on a whole file: the two labels of this one have no times.
    """
    clips = (
        Clip("span", "m", "", start_s=0, end_s=4, level="S", annotator="AB"),
        Clip("span", "m", "", start_s=0, end_s=4, level="EN", annotator="CD"),
        Clip("whole-file", "m", "", start_s=None, end_s=None, level="S", annotator="AB"),
        Clip("whole-file", "m", "", start_s=None, end_s=None, level="EN", annotator="CD"),
    )
    write_manifest(Manifest(clips, tmp_path), tmp_path / "a.csv")

    assert obygaze("manifest", "disagreements", tmp_path / "a.csv", "--out", tmp_path / "out") == 0
    assert "2 labels of whole files" in capsys.readouterr().err


@pytest.mark.long
def test_a_machine_without_sound_is_compared_on_bodies_and_refused_on_voices(tmp_path):
    """Two people and the machine `vlm` mark each clip with both Body and Voice, or with neither.

    By its column `perceives` the machine only sees. A body is seen, so that it may be compared with the
    people on Body. A voice is heard: its answers on Voice are none, and the comparison is refused.
    """
    calls = draw_calls(seed=5, skills=(0.8, 0.8), machine_skill=0.8)
    clips = []
    for annotator, is_marked in {**calls.annotators, "vlm": calls.machine}.items():
        extras = {"model": "", "perceives": ""}
        if annotator == "vlm":
            extras = {"model": "tiny", "perceives": "visual"}
        for number, film in enumerate(calls.films):
            concepts = ("Body", "Voice") if is_marked[number] else ()
            span_s = number, number + 1
            clips.append(Clip(f"c{number}", f"f{film:02}", "", *span_s, "S", concepts, annotator, extras))
    judged = Manifest(tuple(clips), tmp_path)
    clips_of_all, _ = on_common_clips(judged)

    compared_on_body = compare_machines(judged, clips_of_all, task="concept:Body")

    assert list(compared_on_body) == ["vlm"]
    with pytest.raises(ProtocolError, match="vlm: Voice is heard"):
        compare_machines(judged, clips_of_all, task="concept:Voice")


def test_an_annotator_of_thirty_clips_is_compared():
    """`FEWEST_CLIPS` is 30: who judged 30 clips with others is compared, and who judged 29 is not."""
    calls = draw_calls(seed=3, skills=(0.8, 0.8, 0.8), machine_skill=0.8)
    thirty_clips = np.full(1200, UNKNOWN)
    thirty_clips[100:130] = calls.annotators["h0"][100:130]
    one_less = thirty_clips.copy()
    one_less[129] = UNKNOWN
    people = {**calls.annotators, "thirty": thirty_clips, "one less": one_less}

    result = alt_test(calls.machine, people, calls.films)

    assert result.annotators["thirty"] == 30
    assert "one less" not in result.annotators
