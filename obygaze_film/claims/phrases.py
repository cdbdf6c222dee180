"""Write claims as sentences, one function for each kind, in the words and numbers of a language."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from obygaze_features.arguments import checked
from obygaze_film.claims.kinds import (
    AGREE_BY_CHANCE,
    AGREE_LESS,
    AGREED,
    ALL_JUDGED,
    ALL_NOTHING,
    ALL_UNLIKE,
    ALL_UNREAD,
    BELOW_THRESHOLD,
    BLIND,
    BOTH_SIDES,
    DECIDES_NOTHING,
    EARLIER_LAW,
    FILMS_ALIKE,
    FOUND_BY_DETECTOR,
    IN_SIGHT,
    LEVELS_LEFT_OUT,
    LITTLE_JUDGED,
    MEAN_BELOW,
    NEAR_CHANCE,
    NO_SKILL,
    NOT_SURE,
    OF_CONCEPT,
    OF_LABELS,
    OTHER_JUDGES,
    PARTLY_READ,
    SEVERAL_DEFINITIONS,
    SOME_BY_CHANCE,
    SOME_LESS,
    SOME_UNDEFINED,
    TOO_FEW,
    TOO_FEW_FILMS,
    TRAINED_ON,
    UNCALIBRATED,
    UNDEFINED,
    UNTESTED,
    AtUsual,
    ClaimTime,
    ClassSeen,
    ConceptFound,
    ConceptReason,
    DecidedSpan,
    ExpectedShare,
    Experts,
    FilmClaim,
    FlaggedTime,
    FrequentConcept,
    GroupChange,
    GroupShare,
    JudgedShare,
    JudgedTime,
    LearntChange,
    ManyPairs,
    MarkedPassages,
    ModelClaim,
    ModelEvidence,
    Moved,
    NoJudgedShare,
    NoPassage,
    OtherWindows,
    PairKappa,
    PanelAgreement,
    Passage,
    SameProbability,
    SameShare,
    ShareSoFar,
    StagingMean,
    TimelineAgreement,
    Title,
    UnjudgedSpan,
)
from obygaze_film.claims.of_film import HALF, NOTHING_JUDGED
from obygaze_film.claims.words import Words, clock, clock_span
from obygaze_film.film_time import LEAST_SAID_S
from obygaze_film.judged_windows import LEAST_SURE, WindowCounts, needed_windows
from obygaze_film.positive import Positive, people_besides_program, positive_of
from obygaze_film.schema import MOST_UNRELIABLE, ModelRecord
from obygaze_film.segments import DECIMALS, LEAST_CHANGE, LEAST_CONTRIBUTION, MIN_S

MOST_NAMES: Final = 3
"""Concepts that the sentence on passages names at most."""

WARNINGS: Final = {
    TRAINED_ON: "verdict_trained",
    ALL_NOTHING: "verdict_nothing",
    ALL_UNREAD: "verdict_unread",
    ALL_UNLIKE: "verdict_unlike",
    NO_SKILL: "verdict_no_skill",
    LEVELS_LEFT_OUT: "verdict_levels",
}
"""Condition of a film -> its text beside the title."""

NO_PREDICTION: Final = {
    DECIDES_NOTHING: "no_probability_decides",
    TRAINED_ON: "no_probability_trained",
    UNCALIBRATED: "no_probability_uncalibrated",
    ALL_NOTHING: "no_probability_nothing",
    ALL_UNREAD: "no_probability_unread",
    ALL_UNLIKE: "no_probability_unlike",
}
"""Condition of a film, or of a span of it -> why it has no prediction, in a clause."""

NO_SHARE: Final = {
    ALL_NOTHING: "no_rate_nothing",
    ALL_UNREAD: "no_rate_unread",
    ALL_UNLIKE: "no_rate_unlike",
    UNCALIBRATED: "uncalibrated",
    LITTLE_JUDGED: "flagged",
    LEVELS_LEFT_OUT: "levels_left_out",
    TRAINED_ON: "no_rate_trained",
}
"""Condition of a share that is refused -> the text that says why."""

PANEL_DOUBTS: Final = {
    AGREE_LESS: "rate_less",
    SOME_LESS: "rate_some_less",
    AGREE_BY_CHANCE: "rate_chance",
    SOME_BY_CHANCE: "rate_some_chance",
    UNDEFINED: "rate_undefined",
    SOME_UNDEFINED: "rate_some_undefined",
}
"""Condition of a panel's share -> the text that says how its judges agree, or which of them."""

OF_SOME: Final = {SOME_LESS: AGREE_LESS, SOME_BY_CHANCE: AGREE_BY_CHANCE, SOME_UNDEFINED: UNDEFINED}
"""Condition of a panel of which something holds for some pairs -> that of these pairs."""

PAIR_DOUBTS: Final = {AGREE_LESS: "pair_less", AGREE_BY_CHANCE: "pair_chance", UNDEFINED: "pair_undefined"}
"""Condition of two judges' kappa -> the text beside it."""

NO_INTERVAL_OF_FILMS: Final = {TOO_FEW_FILMS: "too_few_films", FILMS_ALIKE: "films_alike"}
"""Condition of a mean over films -> the text that says why it has no interval."""

NO_NUMBER: Final = "–"

AUC_OF_CHANCE: Final = 0.5
"""The AUC of a model that ranks clips at random."""

MOST_PAIRS: Final = 6
"""Pairs of judges whose kappas stand beside a share: all of four judges."""

MOST_SIDE_BY_SIDE: Final = 4
"""Judges whose shares a figure shows beside each other."""

LEAST_OF_INTERVAL: Final = 3
"""Films from which on what learning changed has an interval."""


@checked
def sentences(claims: Sequence[FilmClaim], language: str = "en") -> list[str]:
    """Write claims as sentences, one each.

    Parameters
    ----------
    claims : sequence of Claim
    language : str
        One of `LANGUAGES`.
    """
    words = Words(language)
    return [sentence(claim, words) for claim in claims]


@checked
def sentence(claim: FilmClaim, words: Words) -> str:
    """Write a claim as a sentence."""
    return SENTENCES[type(claim)](claim, words)


# --- numbers alone, for figures and tables
# ---------------------------------------------------------------------------
def share_value(claim: FilmClaim, words: Words) -> str:
    """Write the number of a claim as a share; a dash where it has none."""
    return NO_NUMBER if claim.number is None else words.share(claim.number)


def share_ends(claim: FilmClaim, words: Words) -> str:
    """Write the interval of a share; empty without one."""
    return "" if claim.interval is None else words.shares(claim.interval, "–")


def probability_value(p: float | None, words: Words) -> str:
    """Write the probability of a place in a list; empty where it has none."""
    return "" if p is None else words.probability(p)


def count_value(claim: FilmClaim) -> str:
    """Write the number of a claim that counts things; a dash where it has none."""
    return NO_NUMBER if claim.number is None else str(round(claim.number))


def worth_value(claim: GroupShare) -> str:
    """Write how many judged windows would be needed without the model; a dash where that is not known."""
    return NO_NUMBER if claim.worth is None else str(round(claim.worth))


def number_value(claim: FilmClaim, words: Words) -> str:
    """Write the number of a claim; a dash where it has none."""
    return NO_NUMBER if claim.number is None else words.number(claim.number)


def number_ends(claim: FilmClaim, words: Words) -> str:
    """Write the interval of a number; empty without one."""
    return "" if claim.interval is None else words.numbers(claim.interval, "–")


# --- of models
# ---------------------------------------------------------------------------
def title_sentence(claim: Title, words: Words) -> str:
    """Write a film's title with its gravest warnings."""
    return " · ".join([claim.what, *_warnings(claim, words)])


def titles_sentence(claims: Sequence[Title], words: Words) -> str:
    """Write a film's title with the gravest warnings of several models, such as "Alien · linear: WARNING".

    `claims` are of one film, by a model each.
    """
    if len(claims) == 1:
        return title_sentence(claims[0], words)
    title = claims[0].what
    parts = [title]
    for claim in claims:
        warnings = model_warnings(claim, words)
        if warnings:
            parts.append(words.say("named", name=", ".join(claim.who), what=warnings))
    return " · ".join(parts)


def model_warnings(claim: Title, words: Words) -> str:
    """Write the gravest warnings of a model alone; empty without any."""
    return words["semicolon"].join(_warnings(claim, words))


def _warnings(claim: ModelClaim, words: Words) -> list[str]:
    """Write what must be known to read a model's numbers, in clauses."""
    levels = _levels_left_out(claim, words)
    return [words.say(WARNINGS[one], levels=levels) for one in claim.conditions if one in WARNINGS]


def _levels_left_out(claim: ModelClaim, words: Words) -> str:
    """Name the levels that films have, and that a model was neither calibrated nor tested on."""
    return words.listed(claim.levels_left_out) if claim.levels_left_out else ""


def as_positive(claim: FilmClaim, positive: str, words: Words) -> str:
    """Write as what something is marked: as a level, or as having a concept."""
    return words.say("as_concept" if claim.has(OF_CONCEPT) else "as_level", positive=positive)


def evidence_sentence(claim: ModelEvidence, words: Words) -> str:
    """Say what films left out show of a model: clips and films tested, AUC, and whether it may be chance."""
    if claim.has(UNTESTED):
        return words["evidence_none"]
    tested = words.counted("count_films", claim.n_films)
    if claim.n_clips is not None:
        tested = words.say("tested_clips", clips=words.counted("count_clips", claim.n_clips), films=tested)
    if claim.number is None:
        measured = words.say("evidence_undefined", tested=tested)
    else:
        auc = words.number(claim.number)
        if claim.interval is not None:
            ends, level = words.numbers(claim.interval), words.share(claim.interval.level)
            auc = words.say("evidence_interval", auc=auc, ends=ends, level=level)
        measured = words.say("evidence", auc=auc, tested=tested)
    doubt = words["evidence_chance"] if claim.has(NO_SKILL) else ""
    limits = without_levels_sentence(claim, words)
    return f"{measured}{doubt}. {limits}".rstrip()


def without_levels_sentence(claim: ModelClaim, words: Words) -> str:
    """Say which levels films have that a model was neither calibrated nor tested on; empty if none."""
    if not claim.has(LEVELS_LEFT_OUT):
        return ""
    return words.say("without_levels", levels=_levels_left_out(claim, words))


def evidence_note(claim: ModelEvidence, words: Words) -> str:
    """Explain the AUC of a model: of how many films it is, its interval, and what an AUC of chance is."""
    if claim.number is None:
        return words["no_figure"]
    films = words.counted("count_films", claim.n_films)
    chance = words.number(AUC_OF_CHANCE)
    if claim.interval is None:
        return words.say("auc_plain", films=films, chance=chance)
    return words.say("auc_note", films=films, chance=chance, level=words.share(claim.interval.level))


def judged_sentence(claim: JudgedTime, words: Words) -> str:
    """Say how much of a film is judged, cannot be judged, and is black or credits.

    If nothing could be read from a second on up to the film's end, that is said too.
    """
    judged, unjudged, black = words.durations(claim.judged_s, claim.unlike_s, claim.nothing_s)
    shares = time_shares(claim, words)
    parts = words.say(
        _black_key("time_parts", claim),
        judged=judged,
        judged_share=shares.judged,
        unjudged=unjudged,
        unjudged_share=shares.unjudged,
        black=black,
        black_share=shares.black,
    )
    if claim.unread_from_s is None:
        return parts
    unread = words.say("unread_from", start=clock(claim.unread_from_s))
    return f"{parts}{words['semicolon']}{unread}"


class TimeShares(NamedTuple):
    """The parts of a film's time as every sentence writes them: they add up to 100 percent.

    Attributes
    ----------
    judged, unjudged : str
        Share of the film that the model can judge, and that it cannot.
    black : str
        Share that is black or credits.
    """

    judged: str
    unjudged: str
    black: str


def time_shares(claim: JudgedTime, words: Words) -> TimeShares:
    """Write the share of each part of a film's time."""
    return TimeShares(*words.shares_of_whole([claim.judged_s, claim.unlike_s, claim.nothing_s]))


def _unjudged_key(key: str, unjudged: float, unread: float) -> str:
    """Choose the text of what a model cannot judge: unlike the training films, not read, or both.

    Parameters
    ----------
    key : str
        Key of the text of both, such as `flagged`: then `flagged_unlike` is the text where all of it is
        unlike the training films, and `flagged_unread` that where none of it could be read.
    unjudged, unread : float
        Seconds or share that it cannot judge, and what of that could not be read.
    """
    if not unread:
        return f"{key}_unlike"
    # Both are sums over rows: of the same rows, they may differ in their last digits.
    is_all_unread = unread >= unjudged * (1 - 1e-9)
    return f"{key}_unread" if is_all_unread else key


def _black_key(key: str, claim: JudgedTime) -> str:
    """Choose the text of what is black or credits: `KEY_found` says that a detector found it to be so."""
    return f"{key}_found" if claim.has(FOUND_BY_DETECTOR) else key


def unjudged_sentence(claim: JudgedTime, words: Words) -> str:
    """Say how much of the film cannot be judged, and how much is black or credits; empty if nothing."""
    shares = time_shares(claim, words)
    unjudged, black = words.durations(claim.unlike_s, claim.nothing_s)
    parts = []
    if claim.unlike_s and not claim.has(UNCALIBRATED):
        key = _unjudged_key("sure_unjudged", claim.unlike_s, claim.unread_s)
        parts.append(words.say(key, time=unjudged, share=shares.unjudged))
    if claim.unread_from_s is not None:
        parts.append(words.say("sure_unread_from", start=clock(claim.unread_from_s)))
    if claim.nothing_s:
        parts.append(words.say(_black_key("sure_nothing", claim), time=black, share=shares.black))
    return " ".join(parts)


def unjudged_caveat(claim: JudgedTime, words: Words) -> str:
    """Say which share of the film has no score as the model cannot judge it, and why it can't."""
    key = _unjudged_key("caveat_unlike", claim.unlike_s, claim.unread_s)
    return words.say(key, share=time_shares(claim, words).unjudged)


def unjudged_legend(claim: JudgedTime, words: Words) -> str:
    """Say what is drawn as what the model cannot judge: unlike the training films, not read, or both."""
    return words[_unjudged_key("legend_unlike", claim.unlike_s, claim.unread_s)]


def black_caveat(claim: JudgedTime, words: Words) -> str:
    """Say which share of the film has no score since it is black or credits."""
    return words.say(_black_key("caveat_nothing", claim), share=time_shares(claim, words).black)


def threshold_caveat(threshold_p: float, words: Words) -> str:
    """Say which threshold passages reach, and that their means may be below it."""
    return words.say("caveat_threshold", threshold=words.probability(threshold_p))


def near_chance_caveat(names: Sequence[str], words: Words) -> str:
    """Name the concepts that films left out do not show to be found better than chance."""
    return words.counted("caveat_near_chance", len(names), names=words.listed(names))


def without_tier_caveat(names: Sequence[str], words: Words) -> str:
    """Name the concepts that tiers leave out, as nothing shows that they are found better than chance."""
    return words.counted("caveat_without_tier", len(names), names=words.listed(names))


class MarkedLengths(NamedTuple):
    """Lengths of time of the sentence on passages, as it writes them: all in one unit.

    Attributes
    ----------
    judged : str
        Of what the model can judge.
    marked, reaching : str
        Of the passages, and of what in them reaches the threshold.
    black : str
        Of black or credits.
    """

    judged: str
    marked: str
    reaching: str
    black: str


def marked_sentence(claim: MarkedPassages, words: Words) -> str:
    """Say how many passages a model marks in the part of a film that it can judge, and as what.

    Such as: "The model judges all of this film (90 minutes) and marks 3 passages, 12 minutes (9 minutes of
    them at its threshold or above), as “S”; in half of the marked time Look can be seen, in its favour."
    """
    judged_time = claim.judged
    judged, marked, reaching, black = words.durations(
        judged_time.judged_s, claim.marked_s, claim.called_s, judged_time.nothing_s
    )
    lengths = MarkedLengths(judged=judged, marked=marked, reaching=reaching, black=black)
    if not claim.number:
        return _none_marked_sentence(claim, lengths, words)
    is_all_marked = judged_time.judged_s - claim.marked_s < LEAST_SAID_S
    return words.say(
        "sentence" if claim.number > 1 else "sentence_one",
        judged_part=_judged_part(claim, lengths, words),
        n=round(claim.number),
        time=lengths.marked,
        **_marked_as(claim, lengths, words),
        all_marked=words["marked_all"] if is_all_marked else "",
        frequent=_frequent_concepts(claim.concepts, words),
    )


def _marked_as(claim: MarkedPassages, lengths: MarkedLengths, words: Words) -> dict[str, str]:
    """Write as what passages are marked (`as_what`), and how much of their time reaches the threshold.

    A passage goes on where the probability falls below the threshold for a short time. All of it is marked as
    a level, and `reaching` adds for how much of it the threshold is reached. But a concept is found only
    where the threshold is reached: then `as_what` says for how much time, and `reaching` is empty.
    """
    positive = _meanings(claim.positive, words)
    # The lengths are compared as they are written, so that no difference is said that nobody sees.
    is_partly_below = lengths.reaching != lengths.marked
    if claim.positive.is_concept:
        key = "marked_concept_called" if is_partly_below else "marked_concept"
        return {"as_what": words.say(key, positive=positive, reaching=lengths.reaching), "reaching": ""}
    reaching = ""
    if is_partly_below:
        reaching = words.say("sentence_called", reaching=lengths.reaching)
    return {"as_what": words.say("as_level", positive=positive), "reaching": reaching}


def _none_marked_sentence(claim: MarkedPassages, lengths: MarkedLengths, words: Words) -> str:
    """Say that a model marks no passage, and what reaches its threshold but is too short for one."""
    key = "sentence_none_concept" if claim.positive.is_concept else "sentence_none"
    judged_part = _judged_part(claim, lengths, words)
    text = words.say(key, judged_part=judged_part, as_what=_meanings(claim.positive, words))
    short_places = short_places_phrase(claim, words)
    return f"{text} {_capitalised(short_places)}." if short_places else text


def _frequent_concepts(concepts: Sequence[FrequentConcept], words: Words) -> str:
    """Name the concepts that are seen in half of the passages' time or more; empty without any.

    The text says "each in ...", as concepts that are seen in half of the time need not be seen together.
    """
    if not concepts:
        return ""
    names = [_frequent_concept(concept, words) for concept in concepts[:MOST_NAMES]]
    if len(concepts) > MOST_NAMES:
        names.append(words.counted("more_concepts", len(concepts) - MOST_NAMES))
    key = _how_frequent_key([concept.share for concept in concepts])
    return words.counted(key, len(concepts), names=words.listed(names))


def _how_frequent_key(shares: Sequence[float]) -> str:
    """Choose the text of concepts that are seen in these shares of the passages' time, all at least half."""
    if all(share == HALF for share in shares):
        return "mostly_half"  # "in half of the marked time"
    if all(share > HALF for share in shares):
        return "mostly_more"  # "in more than half"
    return "mostly"  # "in at least half"


def _capitalised(text: str) -> str:
    """Begin a text with a capital, and leave its other letters as they are."""
    return f"{text[:1].upper()}{text[1:]}"


def _meanings(positive: Positive, words: Words) -> str:
    """Name what a model finds: each level, or its concept, with its title and what it means.

    Such as "S (Sure: objectification is certain)". If the labels of its training were planted by a program,
    that is said in place of what people mean by the level.
    """
    if not positive.meanings:
        return words.say("quoted", text=positive.task_title)
    named = []
    for meaning in positive.meanings:
        name, title = words.translated(meaning.name), words.translated(meaning.title)
        if positive.is_planted:
            definition = words.say("planted_means", name=name)
        else:
            definition = words.translated(meaning.text)
        explanations = [text for text in (title, definition) if text and text != name]
        if explanations:
            named.append(words.say("meaning", name=name, text=words["colon"].join(explanations)))
        else:
            named.append(words.say("quoted", text=name))
    return f" {words['or']} ".join(named)


def _judged_part(claim: MarkedPassages, lengths: MarkedLengths, words: Words) -> str:
    """Begin a sentence with what a model can judge, as "The model judges all of this film (90 minutes) and".

    Where it can judge little of the film, that is said first, in a sentence of its own.
    """
    judged_time = claim.judged
    model = words["the_model"]
    if claim.is_one_of_several:
        model = words.say("the_model_named", name=claim.who[0])
    black = ""
    if judged_time.nothing_s >= LEAST_SAID_S:
        black = words.say(_black_key("sentence_rest", judged_time), black=lengths.black)
    facts = {
        "model": model,
        "model_capitalised": _capitalised(model),  # where it begins the sentence
        "judged": lengths.judged,
        "share": time_shares(judged_time, words).judged,
        "black": black,
    }
    if judged_time.has(LITTLE_JUDGED):
        return f"{words.say('sentence_little', **facts)} {words['sentence_of_these']}"
    if not judged_time.is_whole:
        return words.say("sentence_of", **facts)
    key = "sentence_all_read" if judged_time.has(PARTLY_READ) else "sentence_all"
    return words.say(key, **facts)


def _frequent_concept(concept: FrequentConcept, words: Words) -> str:
    """Name a concept, and say so if nothing shows that it is found better than chance."""
    name: str = words.translated(concept.name)
    return f"{name} ({words['why_near_chance']})" if concept.is_near_chance else name


def marked_note(claim: MarkedPassages, words: Words) -> str:
    """Say how many passages there would be by each edge of the 80 % band, and how many places are listed."""
    note = words.say("segments_note", low=claim.at_low_edge, high=claim.at_high_edge, n=claim.n_listed)
    short = short_places_phrase(claim, words)
    return f"{note}. {_capitalised(short)}" if short else note


def marked_count(claim: MarkedPassages, words: Words) -> str:
    """Say how many passages a model marks, in words of a table, and what is too short to be one."""
    count = words.counted("passages", round(claim.number or 0))
    short = short_places_phrase(claim, words)
    return f"{count} ({short})" if short else count


def short_places_phrase(claim: MarkedPassages, words: Words) -> str:
    """Say how much time reaches the threshold in places too short for a passage; empty if none."""
    if not claim.short_s:
        return ""
    time = words.duration(claim.short_s)
    return words.say("short_places", time=time, least=words.seconds(MIN_S))


def passage_sentence(claim: Passage, words: Words) -> str:
    """Say where a passage is, its probability with the band, and what speaks for it and against it."""
    number = f"{claim.name}. " if claim.name else ""  # a span that somebody marked has none
    text = f"{number}{span_ends(claim.time)}: {passage_p(claim, words)}"
    below = below_phrase(claim, words)
    if below:
        text = f"{text} ({below})"
    reasons = reasons_sentence(claim.reasons, words)
    return f"{text}. {reasons}".rstrip()


def below_phrase(claim: Passage, words: Words) -> str:
    """Say that all of a passage, or its mean alone, is below the threshold, with the threshold if known.

    Empty if its mean reaches the threshold.
    """
    if claim.threshold_p is None:
        return words["below"] if claim.has(BELOW_THRESHOLD) else ""
    threshold = words.probability(claim.threshold_p)
    if claim.has(MEAN_BELOW):
        return words.say("mean_below", threshold=threshold)
    if claim.has(BELOW_THRESHOLD):
        return words.say("below_value", below=words["below"], threshold=threshold)
    return ""


def span_ends(time: ClaimTime) -> str:
    """Write the ends of a span."""
    return clock_span(time.start_s or 0.0, time.end_s or 0.0)


def passage_p(claim: Passage, words: Words) -> str:
    """Write a passage's probability and its band."""
    p, band = passage_value(claim, words), passage_band(claim, words)
    return f"{p} [{band}]" if band else p


def passage_length(claim: Passage, words: Words) -> str:
    """Write how long a passage is, and how much of it is judged if not all is.

    It may be a second off the difference of the ends that are written, as each of these is rounded.
    """
    if not _is_judged_in_part(claim):
        return words.duration(claim.time.seconds or 0.0)
    length, judged = words.durations(claim.time.seconds or 0.0, claim.judged_s)
    return words.say("length_judged", length=length, judged=judged)


def _is_judged_in_part(claim: Passage) -> bool:
    return (claim.time.seconds or 0.0) - claim.judged_s >= LEAST_SAID_S


def span_judged_note(claim: Passage, words: Words) -> str:
    """Say of how much of a span its numbers are; empty where all of it is judged."""
    if not _is_judged_in_part(claim):
        return ""
    length, judged = words.durations(claim.time.seconds or 0.0, claim.judged_s)
    return words.say("span_judged", length=length, judged=judged)


def unjudged_span_sentence(claim: UnjudgedSpan, words: Words) -> str:
    """Say that a span has no probability, and why."""
    return words.say("span_unjudged", why=no_prediction_phrase(claim.conditions[0], words))


def passage_value(claim: Passage, words: Words, least: str = "hundredth") -> str:
    """Write a passage's probability alone; `least` names the text of one that rounds to 0."""
    return words.probability(claim.number or 0.0, least)


def passage_spoken(claim: Passage, words: Words) -> str:
    """Write a passage's probability and band in words, for screen readers."""
    if claim.interval is None:
        return passage_value(claim, words)
    return words.spoken(claim.number or 0.0, claim.interval.low, claim.interval.high)


def passage_band(claim: Passage, words: Words, between: str = "") -> str:
    """Write the band of a passage's probability."""
    if claim.interval is None:
        return ""
    return words.band(claim.interval.low, claim.interval.high, between)


def passage_label(claim: Passage, words: Words) -> str:
    """Write a passage as a label for other tools, such as "3. S 0.62 [0.41, 0.80]; Look, Body; black bars".

    The label has its number, level, probability, the concepts seen in it, and its flags. If the probability
    is that of a part of it, its length and that of the part are written too.
    """
    number = claim.name
    level = words.translated(claim.what).replace(" / ", "/")
    parts = [f"{number}. {level} {passage_p(claim, words)}"]
    if _is_judged_in_part(claim):
        parts.append(passage_length(claim, words))
    if claim.present:
        parts.append(", ".join(words.translated(name) for name in claim.present))
    below = below_phrase(claim, words)
    if below:
        parts.append(below)
    if claim.flags:
        parts.append(words.flags(";".join(claim.flags), is_judged=True))
    return "; ".join(parts)


def citation_sentence(
    claim: Passage | UnjudgedSpan,
    positive: str,
    model: str,
    windows: OtherWindows | None,
    words: Words,
    *,
    planted: str = "",
) -> str:
    """Cite the probability of a level in a span by a model, with its band, or why there is none.

    What a reader must know is cited with it: that it is below the threshold, that it is of a part of the
    span, the model's warnings (`WARNINGS`), windows of another length than its clips, and planted labels.

    Parameters
    ----------
    claim : Passage or UnjudgedSpan
    positive : str
        The level, with its meaning.
    model : str
        Its title and digest.
    windows : OtherWindows or None
    words : Words
    planted : str
        That a program gave the labels the model was trained on (`planted_sentence`); empty if people did.
    """
    if isinstance(claim, UnjudgedSpan):
        why = no_prediction_phrase(claim.conditions[0], words)
        return words.say("cited_none", positive=positive, why=why, model=model)
    parts = [words.say("cited", positive=positive, p=passage_p(claim, words), model=model)]
    below = below_phrase(claim, words)
    if below:
        parts.append(below)
    if _is_judged_in_part(claim):
        length, judged = words.durations(claim.time.seconds or 0.0, claim.judged_s)
        parts.append(words.say("cited_judged", length=length, judged=judged))
    parts += _warnings(claim, words)
    if windows is not None:
        window = words.seconds(windows.number or 0.0)
        parts.append(words.say("cited_windows", window=window, clips=_lengths_of_clips(windows, words)))
    if planted:
        parts.append(_as_clause(planted))
    return words["semicolon"].join(parts)


def moved_sentence(claim: Moved, words: Words) -> str:
    """Say where learning changed a passage's probability, from what to what."""
    before, after = words.probability(claim.before), words.probability(claim.number or 0.0)
    return f"{span_ends(claim.time)}: {before} → {after}"


def at_usual_sentence(claim: AtUsual, words: Words) -> str:
    """Write a span's probability, and what it would be with a concept at its usual value: "0.62 → 0.41"."""
    p = words.probability(claim.before, "short_hundredth")
    p_at_usual = words.probability(claim.number or 0.0, "short_hundredth")
    return f"{p} → {p_at_usual}"


def no_passage_sentence(claim: NoPassage, words: Words) -> str:
    """Say that no passage reaches the threshold."""
    return words.say("export_none", p=words.probability(claim.number or 0.0))


def flagged_sentence(claim: FlaggedTime, words: Words) -> str:
    """Say which share of a film has a flag."""
    return words.say("flagged_time", flag=words[f"flag_{claim.what}"], share=words.share(claim.number or 0.0))


def windows_sentence(claim: OtherWindows, words: Words) -> str:
    """Say that the windows are of another length than the clips of the training, or of the calibration."""
    window = words.seconds(claim.number or 0.0)
    return words.say("another_window", window=window, clips=_lengths_of_clips(claim, words))


def _lengths_of_clips(claim: OtherWindows, words: Words) -> str:
    """Write the median lengths of the clips of a model's training and calibration, as far as known."""
    trained = "" if claim.trained_s is None else words.seconds(claim.trained_s)
    calibrated = "" if claim.calibrated_s is None else words.seconds(claim.calibrated_s)
    if trained == calibrated:
        return words.say("clips_of_both", clip=trained)
    parts = []
    if trained:
        parts.append(words.say("clips_trained", clip=trained))
    if calibrated:
        parts.append(words.say("clips_calibrated", clip=calibrated))
    return words.listed(parts)


def concept_label(claim: ConceptFound, words: Words) -> str:
    """Write how well a concept is found, beside chance."""
    if claim.number is None or claim.chance is None:
        return words["unknown_ap"]
    return words.say("ap", ap=words.number(claim.number), chance=words.number(claim.chance))


def concept_span_label(name: str, p: float, words: Words) -> str:
    """Write a concept with its mean probability in a span where it is seen."""
    return f"{words.translated(name)} {words.number(p)}"


def concept_sentence(claim: ConceptFound, words: Words) -> str:
    """Say how well a concept is found."""
    return f"{words.translated(claim.what)}: {concept_label(claim, words)}"


def staging_sentence(claim: StagingMean, words: Words) -> str:
    """Write the mean of a variable of staging, with its unit, and of how many windows where not of all."""
    mean = words.say(f"{claim.what}_mean", value=words.number(claim.number or 0.0, claim.digits))
    if claim.n_known == claim.n_windows:
        return mean
    known = words.counted("count_windows", claim.n_known)
    return words.say("mean_of_windows", mean=mean, windows=known, all=claim.n_windows)


def figure_notes(
    positive: str,
    model: str,
    words: Words,
    *,
    planted: str = "",
    threshold: str = "",
    concepts_left_out: Sequence[str] = (),
) -> list[str]:
    """Write the sentences below a figure: what its curve and its band are, and what it leaves out.

    Parameters
    ----------
    positive, model : str
        What the curve is the probability of, and by which model.
    words : Words
    planted, threshold : str
        That a program gave the labels (`planted_sentence`), and whether passages reach the threshold; each
        is empty where there is nothing to say.
    concepts_left_out : sequence of str
        Those that are not drawn, as nothing shows that they are found better than chance.
    """
    notes = [words.say("figure_note", positive=positive, model=model)]
    notes += [sentence for sentence in (planted, threshold) if sentence]
    if concepts_left_out:
        names = words.listed(concepts_left_out)
        notes.append(words.counted("figure_without", len(concepts_left_out), names=names))
    return notes


def figure_threshold_sentence(threshold_p: float, words: Words) -> str:
    """Say which threshold the passages of a figure reach."""
    return words.say("figure_threshold", value=words.number(threshold_p))


def threshold_label(p: float, words: Words) -> str:
    """Write the threshold of a model beside its line."""
    return words.say("threshold", value=words.number(p))


# --- reasons
# ---------------------------------------------------------------------------
def reasons_sentence(reasons: Sequence[ConceptReason], words: Words, most: int | None = None) -> str:
    """Say which concepts speak for a passage, against it, and for it in some places and against it in others.

    Such as: "For it: more Look than usual; less Voice than usual. Against it: more Body than usual."

    Parameters
    ----------
    reasons : sequence of ConceptReason
        Only those are named that move its probability enough to be said, those that move it most first.
    words : Words
    most : int, optional
        Largest number of concepts that are named for it, against it, and both; the others are counted.
    """
    if not reasons:
        return ""
    parts = []
    for side in ("why_for", "why_against", "why_both"):
        reasons_of_side = [reason for reason in reasons if reason.moves and _side_key(reason) == side]
        if not reasons_of_side:
            continue
        reasons_of_side.sort(key=_largest_change_first)
        phrases = [reason_phrase(reason, words) for reason in reasons_of_side[:most]]
        n_more = len(reasons_of_side) - len(phrases)
        if n_more:
            phrases.append(words.counted("more_concepts", n_more))
        parts.append(words.say(side, reasons=words["semicolon"].join(phrases)))
    if parts:
        return " ".join(parts)
    # No concept is named: none reaches the least change, or of a tree, the least contribution to the logit.
    if all(reason.number is None for reason in reasons):
        return words.say("why_nothing_weighs", least=words.number(LEAST_CONTRIBUTION))
    return words.say("why_nothing", least=words.number(LEAST_CHANGE))


def _largest_change_first(reason: ConceptReason) -> float:
    """Return a number by which reasons are sorted: minus the size of the change that is due to each.

    A model without usual values, such as a tree, has no changes: contributions to the logit stand for them.
    """
    change = reason.contribution if reason.number is None else reason.number
    # In the last digits the numbers differ between machines: rounded, equal ones keep their order.
    return -round(abs(change), DECIMALS)


def _side_key(reason: ConceptReason) -> str:
    """Choose the text of the side that a reason is on."""
    if reason.has(BOTH_SIDES):
        return "why_both"
    return "why_for" if reason.is_for else "why_against"


def reasons_note(words: Words, *, has_usual: bool) -> str:
    """Explain the list of reasons: what "more than usual" means, and from which change on one is named.

    `has_usual` is False of a model whose concepts have no usual values, such as a tree.
    """
    if has_usual:
        return words.say("reasons_what", least=words.number(LEAST_CHANGE))
    return words.say("reasons_what_weights", least=words.number(LEAST_CONTRIBUTION))


def reason_sentence(claim: ConceptReason, words: Words) -> str:
    """Say whether a concept speaks for a passage or against it, or that it does too little."""
    if claim.moves:
        return reasons_sentence([claim], words)
    if claim.number is None:
        return words.say("why_little_weighs", least=words.number(LEAST_CONTRIBUTION))
    return words.say("why_little", least=words.number(LEAST_CHANGE))


def reason_phrase(claim: ConceptReason, words: Words) -> str:
    """Write a reason, such as "more Look than usual (0.62, 0.41 at its usual value)"."""
    phrase: str = words.translated(claim.what)
    if claim.amount:  # "more", "less" or "mixed"
        phrase = words.say(f"why_{claim.amount}", concept=claim.what)
    notes = []
    if claim.usual_p is not None:
        p, usual = words.probability(claim.p), words.probability(claim.usual_p)
        if p != usual:
            key = "why_parted" if _p_contradicts_amount(claim, claim.usual_p) else "why_usual"
            notes.append(words.say(key, p=p, usual=usual))
    if claim.has(NEAR_CHANCE):
        notes.append(words["why_near_chance"])
    return f"{phrase} ({', '.join(notes)})" if notes else phrase


def _p_contradicts_amount(claim: ConceptReason, usual_p: float) -> bool:
    """Whether "more" of a concept than usual is said though its mean probability is lower, or the reverse.

    The amount that is said compares the mean of a concept's values in a passage with its usual value.
    Probabilities are not proportional to values: their mean may lie on the other side of the usual one.
    """
    if claim.amount not in ("more", "less"):
        return False
    amount_by_p = "more" if claim.p > usual_p else "less"
    return claim.amount != amount_by_p


def classes_sentence(claims: Sequence[ClassSeen], words: Words) -> str:
    """Say which classes classifiers find more probable in a span than in its film; empty without one."""
    sentences = []
    for who in dict.fromkeys(claim.who for claim in claims):
        own = [class_phrase(claim, words) for claim in claims if claim.who == who]
        names = words["semicolon"].join(own)
        sentences.append(words.say("classes", classifier=", ".join(who), names=names))
    return " ".join(sentences)


def class_sentence(claim: ClassSeen, words: Words) -> str:
    """Say that a classifier finds a class more probable in a span than in its film."""
    return classes_sentence([claim], words)


def class_phrase(claim: ClassSeen, words: Words) -> str:
    """Write a class with its probability beside the film's."""
    p = words.probability(claim.number or 0.0)
    usual = words.probability(claim.usual_p, "short_hundredth")
    return words.say("class_p", name=claim.what, p=p, usual=usual)


def reason_p(claim: ConceptReason, words: Words) -> str:
    """Write the probability of a concept in a passage, and that it is not seen there if it is not."""
    p = words.probability(claim.p)
    return p if claim.is_present else words.say("not_seen", p=p)


def reason_p_alone(claim: ConceptReason, words: Words) -> str:
    """Write the probability of a concept in a span, short."""
    return words.probability(claim.p, "short_hundredth")


def reason_weight(claim: ConceptReason, words: Words) -> str:
    """Write what a concept adds to the logit, with its sign."""
    return words.signed(claim.contribution)


# --- why there is no prediction
# ---------------------------------------------------------------------------
def no_prediction_phrase(reason: str, words: Words) -> str:
    """Say in a clause why a film, or a span of it, has no prediction: `reason` is its condition."""
    return words[NO_PREDICTION[reason]]


def no_place_phrase(reason: str, words: Words) -> str:
    """Say in a clause why no place of a film is listed: it has no prediction, or all places are short."""
    if reason:
        return no_prediction_phrase(reason, words)
    return words.say("no_probability_short", n=words.seconds(MIN_S))


# --- what a model does not tell apart
# ---------------------------------------------------------------------------
def same_sentence(claim: SameProbability, words: Words) -> str:
    """Say that a model gives all that it can judge of a film one probability, and so tells nothing apart.

    Where the probabilities differ by a little, the lowest and the highest are said, with a third decimal.
    """
    least, most = words.number(claim.least, 3), words.number(claim.most, 3)
    if least != most:
        return words.say("nearly_same_probability", model=claim.who[0], least=least, most=most)
    p = words.probability(claim.number or 0.0)
    return words.say("same_probability", model=claim.who[0], p=p)


def same_share_sentence(claim: SameShare, words: Words) -> str:
    """Say that a model expects the same share of all films, and so does not tell them apart."""
    share = words.share(claim.number or 0.0)
    films = words.counted("count_films", claim.n_films)
    return words.say("same_share", model=claim.who[0], share=share, films=films)


# --- shares that a model expects
# ---------------------------------------------------------------------------
def expected_sentence(claim: ExpectedShare, words: Words) -> str:
    """Say which share of a film's time a model expects, or why it says none."""
    if claim.number is None:
        return no_share_sentence(claim, words)
    key = "expects_concept" if claim.has(OF_CONCEPT) else "expects"
    parts = [words.say(key, share=words.share(claim.number), positive=claim.what)]
    if claim.interval is not None:
        parts.append(words.say("expects_bracket", ends=words.shares(claim.interval)))
    if claim.n_windows is not None:
        parts.append(_few_windows_phrase(claim.n_windows, words))
    if claim.error is not None:
        parts.append(words.say("expects_error", error=words.distance(claim.error)))
    return words["semicolon"].join(parts)


def _few_windows_phrase(n_windows: float, words: Words) -> str:
    """Say that a bracket is wider since a film's judged time is that of few windows, such as 3 or 2.5."""
    n = round(n_windows, 1)
    if n.is_integer():
        return words.counted("bracket_few", int(n))  # 1 has a text of its own, in the singular
    return words.say("bracket_few", n=words.number(n, 1))


def no_share_sentence(claim: ExpectedShare, words: Words) -> str:
    """Say why a model has no share of a film: the first of its conditions that `NO_SHARE` has a text for."""
    levels = _levels_left_out(claim, words)
    for condition in claim.conditions:  # the gravest first
        if condition in NO_SHARE:
            key = NO_SHARE[condition]
            if condition == LITTLE_JUDGED:
                key = _unjudged_key(key, claim.unlike, claim.unread)
            return words.say(key, share=words.share(claim.unlike), levels=levels)
    return words.say("no_rate", reason=claim.reason)  # in the words of the film's record


def expected_note(claim: ExpectedShare, words: Words) -> str:
    """Explain the bracket of an expected share.

    It says what the bracket holds, that few windows make it wider, how far the shares of films left out were
    off, and how many clips of each level the calibration was fitted on.
    """
    parts = [words["no_bracket" if claim.interval is None else "bracket"]]
    if claim.n_windows is not None:
        few = _few_windows_phrase(claim.n_windows, words)
        parts.append(f"{_capitalised(few)}.")
    if claim.error is not None and claim.worst_error is not None:
        error, worst_error = words.distance(claim.error), words.distance(claim.worst_error)
        parts.append(words.say("expected_note", error=error, worst=worst_error))
    if claim.clips:
        clips = [f"{n} {words.translated(level)}" for level, n in claim.clips.items()]
        parts.append(words.say("calibrated_on", clips=words.listed(clips)))
    return " ".join(parts)


def error_sentence(claim: ExpectedShare, words: Words) -> str:
    """Say how far the shares that the model expected of films left out were off.

    It is empty if that is not known, or if too little of this film is judged: then the model expects no share
    of it that could be off.
    """
    is_too_little_judged = any(claim.has(condition) for condition in (LITTLE_JUDGED, *NOTHING_JUDGED))
    if claim.error is None or is_too_little_judged:
        return ""
    error = words.distance(claim.error)
    if claim.has(LEVELS_LEFT_OUT):
        calibrated_levels = [*claim.clips]
        return words.say("sure_share_among", error=error, levels=words.listed(calibrated_levels))
    return words.say("sure_share", error=error)


def expected_what(claim: ExpectedShare, positive: str, words: Words) -> str:
    """Say what the share of a figure is that a model expects."""
    return words.say("expected_concept" if claim.has(OF_CONCEPT) else "expected", positive=positive)


# --- of people
# ---------------------------------------------------------------------------
def experts_sentence(claim: Experts, words: Words) -> str:
    """Say how far two experts agree on what a model finds: second by second, and on a film's share."""
    rank_correlation, level = words.number(claim.rank), ""
    if claim.rank_interval is not None:
        rank_correlation = f"{rank_correlation} [{words.numbers(claim.rank_interval)}]"
        level = f" ({words.share(claim.rank_interval.level)})"
    return words.say(
        "human",
        corpus=claim.who[0],
        positive=claim.what,
        kappa=words.number(claim.number or 0.0),
        rank=rank_correlation,
        level=level,
    )


def experts_note(claim: Experts, words: Words) -> str:
    """Say how far two experts agree second by second."""
    kappa = words.number(claim.number or 0.0)
    return words.say("sure_human", corpus=claim.who[0], positive=claim.what, kappa=kappa)


def boundaries_sentence(claim: Experts, words: Words) -> str:
    """Say how seldom experts agree on boundaries."""
    return words.say("about_4", boundary=words.number(claim.boundary))


def experts_caveat(claim: Experts, words: Words) -> str:
    """Say how far two experts agree second by second, and on boundaries."""
    known = {"kappa": words.number(claim.number or 0.0), "boundary": words.number(claim.boundary)}
    return words.say("caveat_human", corpus=claim.who[0], positive=claim.what, **known)


def judged_share_sentence(claim: JudgedShare, words: Words) -> str:
    """Say whose share of a film it is, with its interval, and how often they called windows positive.

    Such as: "AB would mark as “S” 17% [9%, 28%] of the film without black and credits, 95% interval, from
    60 windows judged blindly, of 130 that do not overlap (positive: 11 of 60)". Then follow what corrected
    the share, and of a panel that its judges may agree no better than chance.
    """
    interval = claim.interval  # None if all windows were judged
    key = "rate_panel" if claim.is_of_panel else "rate_judge"
    text = words.say(
        key if interval else f"{key}_all",
        who=words.listed([words.judge(name) for name in claim.who]),
        share=words.share(claim.number or 0.0),
        time=judged_time_phrase(claim, words),
        ends=words.shares(interval) if interval else "",
        level=words.share(interval.level) if interval else "",
        marked=as_positive(claim, claim.what, words),
        positives=words.listed([str(n) for n in claim.positives]),
        n=claim.n,
        all=_all_windows(claim, words),
        windows=_judged_windows(claim, words),
    )
    text = words["semicolon"].join([text, *_corrected_by(claim, words), *panel_doubts(claim, words)])
    if claim.has(SEVERAL_DEFINITIONS):
        return under_definition(claim, text, words)
    return text


def under_definition(claim: JudgedShare | NoJudgedShare | PairKappa, text: str, words: Words) -> str:
    """Begin a sentence with the definition that people judged under: its codebook and version, if known."""
    if claim.definition_name:
        definition = words.say("definition_named", name=claim.definition_name)
    else:
        definition = words.say("definition_digest", digest=claim.definition[:12])
    return words.say("rate_under", definition=definition, rate=text)


def _corrected_by(claim: JudgedShare, words: Words) -> list[str]:
    """Say that a model, or labels in its place, corrected a share; empty if it is of the judgements alone."""
    if not claim.is_corrected:
        return []
    key = "rate_corrected_labels" if claim.is_of_labels else "rate_corrected"
    return [words.say(key, model=words.judge(claim.model))]


def _judged_windows(claim: JudgedShare, words: Words) -> str:
    """Write how many windows were judged (by each of a panel), and how."""
    kind = "windows_each_judged" if claim.is_of_panel else "windows_judged_so"
    return words.counted(kind, claim.n, blindly=_blindly(claim, words))


def _all_windows(claim: JudgedShare, words: Words) -> str:
    """Write of how many windows a share is: fewer than were scored, as these overlap."""
    return words.counted("of_windows_sure" if claim.has(NOT_SURE) else "of_windows", claim.n_windows)


def _blindly(claim: FilmClaim, words: Words) -> str:
    """Write how the windows of a number were judged: blindly, and surely where others were left out."""
    return words["blindly_surely" if claim.has(NOT_SURE) else "blindly"]


def judged_time_phrase(claim: JudgedShare | ShareSoFar, words: Words) -> str:
    """Write of which time a share by judges is: without black, credits and windows they were not sure of.

    Where a part of the film could not be read, it is of what could be. If they were not sure of more than a
    fifth of its content, the length of the rest is written.
    """
    suffix = "_read" if claim.has(PARTLY_READ) else ""  # of the keys of texts on what could be read
    if not claim.has(NOT_SURE):
        return words[f"of_content{suffix}"]
    if _is_of_little_time(claim):
        return _little_time_phrase(claim, words)
    windows = words.counted("unsure", claim.n_unsure, time=words.duration(claim.unsure_s))
    if len(claim.who) > 1:
        return words.say(f"of_sure_panel{suffix}", windows=windows)
    who_was_not = words.say("unsure_judge", who=words.judge(claim.who[0]))
    return words.say(f"of_sure{suffix}", windows=windows, who=who_was_not)


def _is_of_little_time(claim: JudgedShare | ShareSoFar) -> bool:
    """Whether the judges were not sure of more than a fifth of the content that a share could be of."""
    sure_s = claim.time.seconds
    return sure_s is not None and claim.unsure_s > MOST_UNRELIABLE * (sure_s + claim.unsure_s)


def _little_time_phrase(claim: JudgedShare | ShareSoFar, words: Words) -> str:
    """Write the length of the time that a share is of, where that is little of the film's content.

    If all windows were judged, it is "the 9 minutes that AB was sure of". Else AB has not seen all of these 9
    minutes, and they are "the 9 minutes that are left without 3 windows of which AB was not sure".
    """
    sure, unsure = words.durations(claim.time.seconds or 0.0, claim.unsure_s)
    is_of_panel = len(claim.who) > 1
    if claim.has(ALL_JUDGED):
        key = "of_little_panel" if is_of_panel else "of_little_judge"
    else:
        key = "of_little_left_panel" if is_of_panel else "of_little_left_judge"
    windows = words.counted("unsure", claim.n_unsure, time=unsure)
    return words.say(key, sure=sure, windows=windows, who=words.judge(claim.who[0]))


def panel_doubts(claim: JudgedShare, words: Words) -> list[str]:
    """Say that the judges of a panel may agree no better than chance, and which pairs of them.

    A panel has a condition of its pairs, such as `AGREE_LESS`, if all pairs have it. If only some pairs have
    it, the panel has another one, here `SOME_LESS` (`OF_SOME`).
    """
    doubts = []
    for condition, key in PANEL_DOUBTS.items():
        if claim.has(condition):
            condition_of_pairs = OF_SOME.get(condition, condition)
            pairs = [pair for pair in claim.agreement if pair.has(condition_of_pairs)]
            doubts.append(words.say(key, pairs=_pair_names(pairs, words)))
    return doubts


def _pair_names(pairs: Sequence[PairKappa], words: Words) -> str:
    """Name some pairs of judges, and say how many more there are."""
    names = ["–".join(words.judge(name) for name in pair.who) for pair in pairs[:MOST_NAMES]]
    if len(pairs) > MOST_NAMES:
        names.append(words.counted("more_pairs", len(pairs) - MOST_NAMES))
    return words.listed(names)


def judged_share_line(claim: JudgedShare, words: Words) -> str:
    """Say whose share it is, how many judgements the model saved, and what the model alone expected.

    A model saved judgements if as narrow an interval without it needs more windows: that number is said.
    """
    parts = [judged_share_sentence(claim, words)]
    if claim.interval is not None and claim.worth is not None:
        parts.append(words.say("rate_worth", model=claim.model, worth=round(claim.worth)))
    if claim.expected is not None and claim.expected_s is not None:
        known = {"share": words.share(claim.expected), "time": words.duration(claim.expected_s)}
        key = "rate_marked" if claim.is_of_labels else "rate_expected"
        parts.append(words.say(key, model=claim.model, **known))
    return words["semicolon"].join(parts)


def judged_share_what(claim: JudgedShare, positive: str, words: Words) -> str:
    """Say what the share of a figure is: whose, of which time, and from how many windows."""
    known = {
        "who": words.listed([words.judge(name) for name in claim.who]),
        "time": judged_time_phrase(claim, words),
        "marked": as_positive(claim, positive, words),
        "windows": _judged_windows(claim, words),
    }
    return words.say("corrected_panel" if claim.is_of_panel else "corrected", **known)


def judged_share_note(claim: JudgedShare, others: Sequence[FilmClaim], words: Words) -> str:
    """Explain a judged share: its interval, how a model changed it, and what else is known of its judges.

    Parameters
    ----------
    claim : JudgedShare
    others : sequence of FilmClaim
        The other claims on the film's judges: each one's own share beside a panel's, how far they agree.
    words : Words
    """
    who = "panel" if claim.is_of_panel else "judge"
    parts = []
    if claim.interval is None:
        parts.append(words[f"judged_all_{who}"])
    else:
        parts.append(words.say("interval_of", level=words.share(claim.interval.level)))
        if claim.worth is not None:
            parts.append(words.say("worth", worth=round(claim.worth)))
    parts += [f"{_capitalised(text)}." for text in _corrected_by(claim, words)]
    parts += alone_expected_sentences(claim, words)
    parts += [f"{_capitalised(text)}." for text in panel_doubts(claim, words)]
    parts += judges_sentences(others, words)
    return " ".join([*parts, *own_shares_sentences([claim, *others], words)])


def own_shares_sentences(claims: Sequence[FilmClaim], words: Words) -> list[str]:
    """Explain why shares are not what a reader would compute from the numbers beside them.

    The share of a panel may be below, or above, that of each of its judges, as it is from the windows that
    all of them judged, or as each share is estimated by itself. A share may not be the number of positive
    windows divided by that of windows, as windows count by their content, and a model may correct it.
    """
    shares = [claim for claim in claims if isinstance(claim, JudgedShare)]
    has_panel = any(claim.is_of_panel for claim in shares)
    parts = []
    if has_panel and len({claim.n for claim in shares}) > 1:
        parts.append(words["own_shares"])
    elif _differs_from_mean_of_judges(shares, words):
        parts.append(words["each_estimated"])
    if any(_differs_from_counts(claim, words) for claim in shares):
        corrected = [share for share in shares if share.is_corrected]
        if not corrected:
            parts.append(words["windows_by_content"])
        elif corrected[0].is_of_labels:
            parts.append(words.say("windows_corrected_by_labels", who=words.judge(corrected[0].model)))
        else:
            parts.append(words["windows_corrected"])
    return parts


def _differs_from_mean_of_judges(shares: Sequence[JudgedShare], words: Words) -> bool:
    """Whether the share of all judges together is not, as written, the mean of each one's own."""
    of_all = [share.number for share in shares if share.is_of_panel and share.number is not None]
    of_each = [share.number for share in shares if not share.is_of_panel and share.number is not None]
    if not of_all or len(of_each) < 2:
        return False
    return words.share(of_all[0]) != words.share(sum(of_each) / len(of_each))


def _differs_from_counts(claim: JudgedShare, words: Words) -> bool:
    """Whether a share is not, as written, the judges' mean number of positive windows divided by windows."""
    if claim.number is None or not claim.n or not claim.positives:
        return False
    mean_positives = sum(claim.positives) / len(claim.positives)
    return words.share(claim.number) != words.share(mean_positives / claim.n)


def alone_expected_sentences(claim: JudgedShare, words: Words) -> list[str]:
    """Say which share the model alone expected, and of which time; nothing where it has none."""
    if claim.expected is None or claim.expected_s is None:
        return []
    known = {"expected": words.share(claim.expected), "time": words.duration(claim.expected_s)}
    if claim.is_of_labels:
        return [words.say("alone_marked", model=claim.model, **known)]
    return [words.say("alone_expected", **known)]


def judges_sentences(claims: Sequence[FilmClaim], words: Words) -> list[str]:
    """Say what is claimed of a film's judges beside a share: a few of each kind, and how many more."""
    shares = [claim for claim in claims if isinstance(claim, JudgedShare)]
    pairs = [claim for claim in claims if isinstance(claim, PairKappa)]
    rest = [claim for claim in claims if not isinstance(claim, JudgedShare | PairKappa)]
    # All of a few shares have a sentence; of more, the first three, and the others together.
    n_named = len(shares) if len(shares) <= MOST_SIDE_BY_SIDE else MOST_NAMES
    parts = [f"{judged_share_sentence(claim, words)}." for claim in shares[:n_named]]
    if n_named < len(shares):
        parts.append(other_shares_sentence(shares[n_named:], words))
    sentences_of_rest = [sentence(claim, words) for claim in [*rest, *pairs[:MOST_PAIRS]]]
    parts += [f"{text.removesuffix('.')}." for text in sentences_of_rest]  # some end with a full stop
    if len(pairs) > MOST_PAIRS:
        parts.append(_other_pairs(pairs[MOST_PAIRS:], words))
    return parts


def other_shares_sentence(claims: Sequence[JudgedShare], words: Words) -> str:
    """Say between which shares those of other judges lie, who are too many to name each."""
    shares = [claim.number or 0.0 for claim in claims]
    low, high = words.share(min(shares)), words.share(max(shares))
    return words.say("other_judges", n=len(shares), low=low, high=high)


def _other_pairs(claims: Sequence[PairKappa], words: Words) -> str:
    """Say between which kappas those of other pairs of judges lie, and of how many it is undefined."""
    kappas = [claim.number for claim in claims if claim.number is not None]
    n_too_few = sum(claim.has(TOO_FEW) for claim in claims)  # pairs that judged too few windows for one
    n_undefined = len(claims) - len(kappas) - n_too_few
    parts = []
    if kappas:
        low, high = words.number(min(kappas)), words.number(max(kappas))
        parts.append(words.counted("other_pairs", len(kappas), low=low, high=high))
    if n_undefined:
        parts.append(words.say("other_pairs_undefined", n=n_undefined))
    if n_too_few:
        parts.append(words.say("other_pairs_few", n=n_too_few))
    return " ".join(parts)


def shares_side_by_side(claims: Sequence[JudgedShare], words: Words) -> str:
    """Write the shares of judges who have none together beside each other; of many, their range.

    The share of a judge who was not sure of all windows has the seconds that it is of.
    """
    if len(claims) > MOST_SIDE_BY_SIDE:
        numbers = [claim.number or 0.0 for claim in claims]
        return f"{words.share(min(numbers))}–{words.share(max(numbers))}"
    return " · ".join(f"{words.judge(claim.who[0])} {_share_of_time(claim, words)}" for claim in claims)


def _share_of_time(claim: JudgedShare, words: Words) -> str:
    """Write a judge's share, and of how much time it is if that is not all of the film's content."""
    share, sure_s = share_value(claim, words), claim.time.seconds
    if sure_s is None or not claim.has(NOT_SURE):
        return share
    return words.say("own_share_of", share=share, time=words.duration(sure_s))


def side_by_side_what(claims: Sequence[JudgedShare], positive: str, words: Words) -> str:
    """Say that these are the shares of single judges, or the ends of those of many, and of which time."""
    key = "corrected_range" if len(claims) > MOST_SIDE_BY_SIDE else "corrected_each"
    time_key = "of_sure_each" if any(claim.has(NOT_SURE) for claim in claims) else "of_content"
    if any(claim.has(PARTLY_READ) for claim in claims):
        time_key += "_read"
    known = {"marked": as_positive(claims[0], positive, words), "time": words[time_key]}
    return words.say(key, **known, n=len(claims))


def side_by_side_note(claims: Sequence[JudgedShare], others: Sequence[FilmClaim], words: Words) -> str:
    """Explain the shares of judges who have none together: each with its interval, and why there is none.

    `others` are the other claims on the judges, such as that they have no share together.
    """
    parts = judges_sentences([*claims, *others], words)
    parts += alone_expected_sentences(claims[0], words)  # the model's share is the same beside each judge's
    return " ".join([*parts, *own_shares_sentences(claims, words)])


def no_judged_share_sentence(claim: NoJudgedShare, words: Words) -> str:
    """Say why a judge, or several together, have no share."""
    is_of_panel = len(claim.who) > 1
    who = "panel" if is_of_panel else "judge"
    names = words.listed([words.judge(name) for name in claim.who])
    if claim.definition and not claim.judged:
        # They judged windows under this definition, but none counts. A share takes windows from the list's
        # first one on, and so the first one was not judged under this definition.
        counted = words[f"first_elsewhere_{who}"]
    else:
        counted = counted_phrase(claim.judged, claim.sure, words, is_of_panel=is_of_panel)
    counted = _with_windows_after_gap(counted, claim.after_gap, words, is_of_panel=is_of_panel)
    if claim.left:
        missing = words.translated(needed_windows(claim.judged, claim.left, claim.least))
    else:
        missing = words["no_window_left"]
    text = words.say(f"no_share_{who}", who=names, counted=counted, lacks=missing)
    if claim.definition:
        return under_definition(claim, text, words)
    return text


def counted_phrase(judged: int, sure: int, words: Words, *, is_of_panel: bool) -> str:
    """Write how many windows were judged blindly (by each of a panel), and how many surely if fewer."""
    key = "counted_by_each" if is_of_panel else "counted"
    if sure < judged:
        key += "_sure"
    return words.counted(key, judged, judged=judged, sure=sure)


def _with_windows_after_gap(counted: str, n: int, words: Words, *, is_of_panel: bool) -> str:
    """Add to a number of windows how many more were judged, after the first gap of the draw; if any.

    Those of a panel count in no share of all its judges, but may count in the share of one of them.
    """
    key = "with_after_gap_panel" if is_of_panel else "with_after_gap"
    return words.counted(key, n, counted=counted) if n else counted


def so_far_sentence(claim: ShareSoFar, words: Words) -> str:
    """Say what a film's share lies between whenever its judge stops."""
    if claim.interval is None:
        return ""
    text = words.say(
        "so_far",
        positive=claim.what,
        time=judged_time_phrase(claim, words),
        low=words.share(claim.interval.low),
        high=words.share(claim.interval.high),
        level=words.share(claim.interval.level),
        usual_width=words.distance(claim.fixed),
        width=words.distance(claim.interval.high - claim.interval.low),
    )
    # Windows drawn by an earlier version: this interval is valid for them only if they are alike in content.
    return f"{text} {words['so_far_alike']}" if claim.has(EARLIER_LAW) else text


def pair_sentence(claim: PairKappa, words: Words) -> str:
    """Say on how many windows two people agree, and their kappa, and where it may be that of chance."""
    text = _few_windows_of_pair(claim, words) if claim.has(TOO_FEW) else _kappa_of_pair(claim, words)
    return under_definition(claim, text, words) if claim.definition else text


def _kappa_of_pair(claim: PairKappa, words: Words) -> str:
    """Say on how many windows two people agree, and their kappa."""
    kappa = words["undefined"] if claim.number is None else words.number(claim.number)
    if claim.interval is not None:
        level = words.share(claim.interval.level)
        kappa = words.say("kappa_ends", kappa=kappa, ends=words.numbers(claim.interval), level=level)
    for doubt, text_of in PAIR_DOUBTS.items():
        if claim.has(doubt):
            kappa = f"{kappa} ({words[text_of]})"
    return words.say(
        "pair_sure" if claim.n_unsure else "pair",
        who=words.listed([words.judge(name) for name in claim.who]),
        alike_windows=words.counted("count_windows", claim.alike),
        n=claim.n,
        share=words.share(claim.alike / claim.n),
        positive=claim.positive,
        unsure=claim.n_unsure,
        kappa=kappa,
    )


def _few_windows_of_pair(claim: PairKappa, words: Words) -> str:
    """Say that two people judged too few windows for a kappa."""
    who = words.listed([words.judge(name) for name in claim.who])
    known = {"who": who, "alike": claim.alike, "unsure": claim.n_unsure, "least": LEAST_SURE}
    known["positive"] = claim.positive
    return words.counted("pair_few_sure" if claim.n_unsure else "pair_few", claim.n, **known)


def pairs_sentence(claim: ManyPairs, words: Words) -> str:
    """Say how far apart the kappas of many pairs are."""
    if claim.interval is None:
        return ""
    ends = {"low": words.number(claim.interval.low), "high": words.number(claim.interval.high)}
    return words.counted("pairs", claim.n_pairs, middle=words.number(claim.number or 0.0), **ends)


def panel_sentence(claim: PanelAgreement, words: Words) -> str:
    """Say how far three judges or more agree."""
    alpha = words.number(claim.number or 0.0)
    key = "judges_alpha_sure" if claim.n_unsure else "judges_alpha"
    unsure = words.counted("alpha_unsure", claim.n_unsure)
    judges = words.listed(claim.who)
    known = {"judges": judges, "unsure": unsure, "alpha": alpha, "positive": claim.positive}
    return words.counted(key, claim.n_windows, **known)


def decision_sentence(claim: DecidedSpan, words: Words) -> str:
    """Say who marked a span as what, and whether in sight of the model's score."""
    key = "decided_agreed" if claim.has(AGREED) else "decided"
    how = words["decided_not_blind"]
    if claim.has(BLIND):
        how = words["decided_blind"]
    elif claim.has(IN_SIGHT):
        how = words["decided_in_sight"]
    who = words.listed([words.judge(name) for name in claim.who])
    return words.say(key, title=claim.what, who=who, how=how)


def timeline_sentence(claim: TimelineAgreement, words: Words) -> str:
    """Say how far a model's timelines agree with an annotator."""
    kappa = words["undefined_timelines"] if claim.number is None else words.number(claim.number)
    if claim.interval is not None:
        level = words.share(claim.interval.level)
        kappa = f"{kappa} [{words.numbers(claim.interval)}] ({level})"
    texts = NO_INTERVAL_OF_FILMS | PAIR_DOUBTS
    doubts = [words[texts[condition]] for condition in texts if claim.has(condition)]
    if doubts:
        kappa = f"{kappa} ({words['semicolon'].join(doubts)})"
    judged, whole = words.durations(claim.time.seconds or 0.0, claim.whole_s)
    return words.say(
        "agrees",
        model=claim.who[0],
        annotator=claim.what,
        kappa=kappa,
        of=words.counted("mean_of_films", claim.n_films),
        judged=judged,
        whole=whole,
    )


# --- of several films
# ---------------------------------------------------------------------------
def groups_sentence(claims: Sequence[FilmClaim], words: Words) -> str:
    """Write the groups' shares, as those who judged them would mark, the trend, and how far judges agree."""
    shares = [claim for claim in claims if isinstance(claim, GroupShare) and claim.number is not None]
    changes = [claim for claim in claims if isinstance(claim, GroupChange) and claim.number is not None]
    trends = [change for change in changes if change.is_by_decade]
    agreement = [claim for claim in claims if isinstance(claim, PairKappa | PanelAgreement)]
    text = _group_shares_sentence(shares, trends, words) if shares else words["no_group"]
    parts = [text, *judges_sentences(agreement, words)]
    parts += [same_share_sentence(claim, words) for claim in claims if isinstance(claim, SameShare)]
    return " ".join(parts)


def _group_shares_sentence(shares: Sequence[GroupShare], trends: Sequence[GroupChange], words: Words) -> str:
    """Write the shares of groups, each with its judges if these are not the same, and the trends."""
    first = shares[0]
    have_same_judges = all(share.who == first.who for share in shares)
    rates = []
    for share in shares:
        judges = "" if have_same_judges else f"{words.listed(share.who)}{words['colon']}"
        rates.append(f"{judges}{group_phrase(share, words)}")
    rates += [later_phrase(trend, words) for trend in trends]
    return words.say(
        _would_mark_key(shares, have_same_judges=have_same_judges),
        who=_judges_of_groups(shares, have_same_judges=have_same_judges, words=words),
        marked=as_positive(first, first.what, words),
        film=words["a_film_read" if _any_has(shares, PARTLY_READ) else "a_film"],
        unsure=_windows_left_out_of_groups(shares, words),
        mean=_mean_of_groups(shares, words),
        level=words.share(first.interval.level) if first.interval else "",
        rates=words["semicolon"].join(rates),
    )


def _windows_left_out_of_groups(shares: Sequence[GroupShare], words: Words) -> str:
    """Say that windows of which judges were not sure are left out of groups' shares; empty if none is."""
    if not _any_has(shares, NOT_SURE):
        return ""
    return words["unsure_left_out_panel" if _any_has_panel(shares) else "unsure_left_out"]


def _mean_of_groups(shares: Sequence[GroupShare], words: Words) -> str:
    """Say over what groups' shares are means: over films, and over the judges of a window if it has more."""
    if not _any_has_panel(shares):
        return words["mean_alone"]
    return words["mean_of_sure_judges" if _any_has(shares, NOT_SURE) else "mean_of_judges"]


def _any_has_panel(shares: Sequence[GroupShare]) -> bool:
    """Whether any of the groups was judged by several people."""
    return any(len(share.who) > 1 for share in shares)


def _judges_of_groups(shares: Sequence[GroupShare], *, have_same_judges: bool, words: Words) -> str:
    """Name the judges of the groups: all if a film has other judges, else "Judges" if a group has others."""
    if have_same_judges:
        return words.listed(shares[0].who)
    if _any_has(shares, OTHER_JUDGES):
        return words.listed(sorted({name for share in shares for name in share.who}))
    return words["judges"]


def _would_mark_key(shares: Sequence[GroupShare], *, have_same_judges: bool) -> str:
    """Choose the text of what one judge, several, or those who judged each film would mark."""
    if _any_has(shares, OTHER_JUDGES):
        return "would_mark_mixed"
    is_of_one_judge = have_same_judges and len(shares[0].who) == 1
    return "would_mark" if is_of_one_judge else "would_mark_panel"


def _any_has(claims: Sequence[FilmClaim], condition: str) -> bool:
    """Whether a condition applies to any of the claims."""
    return any(claim.has(condition) for claim in claims)


def group_value(claim: GroupShare, words: Words) -> str:
    """Write the share of a group with its interval; a dash where it has none."""
    share = share_value(claim, words)
    return f"{share} [{share_ends(claim, words)}]" if claim.interval is not None else share


def group_expected(claim: GroupShare, words: Words) -> str:
    """Write the share that the model alone expects of a group, and of how many films where not of all."""
    if claim.expected is None:
        return NO_NUMBER
    share = words.share(claim.expected)
    if claim.n_expected < claim.n_films:
        return words.say("expected_of", share=share, n=claim.n_expected, all=claim.n_films)
    return share


def points_value(claim: GroupChange, words: Words) -> str:
    """Write a change in percentage points, with its interval; a dash where it is not known."""
    return NO_NUMBER if claim.number is None else words.points(claim.number, claim.interval)


def film_share_value(claim: JudgedShare | ExpectedShare, words: Words) -> str:
    """Write the share of one film among others, with its interval where people judged it."""
    share = share_value(claim, words)
    is_judged = isinstance(claim, JudgedShare) and claim.interval is not None
    return f"{share} [{share_ends(claim, words)}]" if is_judged else share


def film_share_note(claim: JudgedShare | ExpectedShare, words: Words) -> str:
    """Say from how many windows, and whose, the share of one film is, or that it is the model's alone.

    That a model corrected a share, and that its judges may agree no better than chance, is said with it. If
    the model has no share, the reason is said. Labels may stand in the model's place.
    """
    if isinstance(claim, JudgedShare):
        return _judged_film_note(claim, words)
    if claim.number is None:
        return no_share_phrase(claim, words)
    if claim.has(OF_LABELS):
        return words.say("labels_only", who=words.judge(claim.who[0]))
    return words["model_only"]


def _judged_film_note(claim: JudgedShare, words: Words) -> str:
    """Say from how many windows of which judges a share is, and which judges it leaves out."""
    who = words.listed([words.judge(name) for name in claim.who])
    if claim.has(NOT_SURE):
        notes = [words.counted("windows_judged_surely", claim.n + claim.n_unsure, sure=claim.n, who=who)]
        if _is_of_little_time(claim):
            notes.append(words.say("share_of_little", time=_little_time_phrase(claim, words)))
    else:
        notes = [words.counted("windows_judged", claim.n, who=who)]
    if claim.left_out:
        everybody = words.listed([words.judge(name) for name in (*claim.who, *claim.left_out)])
        key = "judged_together_concept" if claim.has(OF_CONCEPT) else "judged_together"
        too_few = words.say(key, who=everybody)
        if claim.after_gap:
            too_few = words.counted("judged_together_gap", claim.after_gap, too_few=too_few)
        notes.append(too_few)
    return words["semicolon"].join([*notes, *_corrected_by(claim, words), *panel_doubts(claim, words)])


def planted_sentence(model: ModelRecord, words: Words) -> str:
    """Say that a program gave the labels that a model was trained on, or some; empty if people gave all."""
    if positive_of(model).is_planted:
        return words["about_1_planted"]
    people = people_besides_program(model)
    return words.say("about_1_partly_planted", names=words.listed(people)) if people else ""


def no_share_phrase(claim: ExpectedShare, words: Words) -> str:
    """Say in a clause that a film has no share, and why if that is known."""
    if claim.number is not None or not any(one in NO_SHARE for one in claim.conditions):
        return words["withheld"]
    return _as_clause(no_share_sentence(claim, words))


def _as_clause(sentence: str) -> str:
    """Write a sentence as a clause of another one: without its capital and full stop."""
    text = sentence.removesuffix(".")
    return f"{text[:1].lower()}{text[1:]}"


def few_windows_note(claim: ExpectedShare, counts: WindowCounts, words: Words) -> str:
    """Say what share the model expects of a film, and that too few of its windows were judged for a rate."""
    counted = counted_phrase(counts.judged, counts.sure, words, is_of_panel=False)
    counted = _with_windows_after_gap(counted, counts.after_gap, words, is_of_panel=False)
    return words.say("model_only_few", alone=film_share_note(claim, words), counted=counted)


def film_share_sentence(title: str, year: str, claim: JudgedShare | ExpectedShare, words: Words) -> str:
    """Write the share of one film among others beside its title, with its interval, and whose share it is."""
    known = {"share": film_share_value(claim, words), "whose": film_share_note(claim, words)}
    return words.say("film_share", title=title, year=year, **known)


def later_phrase(claim: GroupChange, words: Words) -> str:
    """Write the trend, such as "10 years later +4.0 points [−1.0, +9.0]", and what must be known of it."""
    change = claim.number or 0.0
    if claim.note:
        return words.points_text("later_noted", change, claim.interval, note=words.translated(claim.note))
    return words.points_text("later", change, claim.interval)


def group_phrase(claim: GroupShare, words: Words) -> str:
    """Write the share of a group with its interval, and on how few films it rests."""
    share = words.share(claim.number or 0.0)
    if claim.interval is not None:
        share = f"{share} [{words.shares(claim.interval)}]"
    known = {"share": share, "group": words.translated(claim.group)}
    if claim.note:
        return words.say("rate_of_noted", **known, note=words.translated(claim.note))
    return words.say("rate_of", **known)


def group_sentence(claim: GroupShare, words: Words) -> str:
    """Say what share of a group's time its judges would mark, or why there is none."""
    if claim.number is None:
        return f"{words.translated(claim.group)}{words['colon']}{words.translated(claim.reason)}"
    return groups_sentence([claim], words)


def change_sentence(claim: GroupChange, words: Words) -> str:
    """Say by how many points two groups differ, or a share changes, or why that is not known."""
    change = words.translated(claim.change)
    if claim.number is None:
        return f"{change}{words['colon']}{words.translated(claim.reason)}"
    points = words.points_text("points_of", claim.number, claim.interval)
    note = f"{words['semicolon']}{words.translated(claim.note)}" if claim.note else ""
    return f"{change}{words['colon']}{points}{note}"


def learnt_sentence(claim: LearntChange, words: Words) -> str:
    """Say how the AUC changed by learning from judgements: better or worse if its interval excludes 0."""
    verdict_key = "learn_same"
    if claim.interval is not None and claim.interval.low > 0:
        verdict_key = "learn_better"
    elif claim.interval is not None and claim.interval.high < 0:
        verdict_key = "learn_worse"
    difference = words["undefined"]
    if claim.number is not None:
        difference = words.difference(claim.number, claim.interval)
    return words.say(
        "learn_change",
        which=words["learn_judged" if claim.is_of_judged else "learn_corpus"],
        verdict=words[verdict_key],
        difference=difference,
        films=words.counted("count_films", claim.n_films),
        few=words["learn_few"] if claim.n_films < LEAST_OF_INTERVAL else "",
    )


SENTENCES: Final[Mapping[type[FilmClaim], Callable[[Any, Words], str]]] = {
    Title: title_sentence,
    ModelEvidence: evidence_sentence,
    JudgedTime: judged_sentence,
    MarkedPassages: marked_sentence,
    ConceptReason: reason_sentence,
    ClassSeen: class_sentence,
    Passage: passage_sentence,
    UnjudgedSpan: unjudged_span_sentence,
    SameProbability: same_sentence,
    ExpectedShare: expected_sentence,
    Moved: moved_sentence,
    NoPassage: no_passage_sentence,
    FlaggedTime: flagged_sentence,
    OtherWindows: windows_sentence,
    ConceptFound: concept_sentence,
    StagingMean: staging_sentence,
    AtUsual: at_usual_sentence,
    Experts: experts_sentence,
    PairKappa: pair_sentence,
    ManyPairs: pairs_sentence,
    PanelAgreement: panel_sentence,
    JudgedShare: judged_share_line,
    NoJudgedShare: no_judged_share_sentence,
    ShareSoFar: so_far_sentence,
    DecidedSpan: decision_sentence,
    TimelineAgreement: timeline_sentence,
    GroupShare: group_sentence,
    GroupChange: change_sentence,
    SameShare: same_share_sentence,
    LearntChange: learnt_sentence,
}
"""Kind of claim -> the function that writes it."""
