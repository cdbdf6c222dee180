"""Write claims as sentences, one function for each kind, in the words and numbers of a language."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from obygaze_features.arguments import checked
from obygaze_features.text import rounded
from obygaze_film.claims.kinds import (
    AGREE_BY_CHANCE,
    AGREE_LESS,
    AGREED,
    ALL_JUDGED,
    ALL_NOTHING,
    ALL_UNLIKE,
    ALL_UNREAD,
    ANSWERED_TIME,
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
from obygaze_film.film_time import MIN_SAID_S
from obygaze_film.judged_windows import MIN_SURE_WINDOWS, WindowCounts, needed_windows
from obygaze_film.positive import Positive, people_besides_program, positive_of
from obygaze_film.schema import MAX_UNRELIABLE_SHARE, ModelRecord
from obygaze_film.segments import DECIMALS, MIN_CHANGE, MIN_CONTRIBUTION, MIN_S

MAX_NAMES: Final = 3
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
"""Condition of a panel that is true of some of its pairs of judges -> the condition of these pairs."""

PAIR_DOUBTS: Final = {AGREE_LESS: "pair_less", AGREE_BY_CHANCE: "pair_chance", UNDEFINED: "pair_undefined"}
"""Condition of two judges' kappa -> the text beside it."""

NO_INTERVAL_OF_FILMS: Final = {TOO_FEW_FILMS: "too_few_films", FILMS_ALIKE: "films_alike"}
"""Condition of a mean over films -> the text that says why it has no interval."""

NO_NUMBER: Final = "–"

AUC_OF_CHANCE: Final = 0.5
"""The AUC of a model that ranks clips at random."""

MAX_PAIRS: Final = 6
"""Pairs of judges whose kappas stand beside a share: all of four judges."""

MAX_SIDE_BY_SIDE: Final = 4
"""Judges whose shares a figure shows beside each other."""


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
    return NO_NUMBER if claim.worth is None else rounded(claim.worth)


def number_value(claim: FilmClaim, words: Words) -> str:
    """Write the number of a claim; a dash where it has none."""
    return NO_NUMBER if claim.number is None else words.number(claim.number)


def number_ends(claim: FilmClaim, words: Words) -> str:
    """Write the interval of a number; empty without one."""
    return "" if claim.interval is None else words.numbers(claim.interval, "–")


# --- of models
# ---------------------------------------------------------------------------
def title_sentence(claim: Title, words: Words) -> str:
    """Write a film's title with its gravest warnings: "Alien · may be no better than chance"."""
    return " · ".join([claim.what, *_warnings(claim, words)])


def titles_sentence(claims: Sequence[Title], words: Words) -> str:
    """Write a film's title with the gravest warnings of several models, such as "Alien · linear: WARNING".

    Each claim is of the same film, by another model.
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
    """Write what must be known to read a model's numbers, a clause for each such condition of the claim.

    Such as "may be no better than chance".
    """
    levels = _levels_left_out(claim, words)
    conditions = [condition for condition in claim.conditions if condition in WARNINGS]
    return [words.say(WARNINGS[condition], levels=levels) for condition in conditions]


def _levels_left_out(claim: ModelClaim, words: Words) -> str:
    """Name the levels that films have, and that a model was neither calibrated nor tested on."""
    return words.listed(claim.levels_left_out) if claim.levels_left_out else ""


def as_positive(claim: FilmClaim, positive: str, words: Words) -> str:
    """Write as what something is marked: "as S" (a level), or "as having Look" (a concept)."""
    return words.say("as_concept" if claim.has(OF_CONCEPT) else "as_level", positive=positive)


def evidence_sentence(claim: ModelEvidence, words: Words) -> str:
    """Write a model's AUC on films left out of its training, of how many clips and films, and its limits.

    Such as: "AUC on films left out 0.71, 1200 clips of 24 films: may be no better than chance."
    """
    if claim.has(UNTESTED):
        return words["evidence_none"]
    tested = words.counted("count_films", claim.n_films)
    if claim.n_clips is not None:
        tested = words.say("tested_clips", clips=words.counted("count_clips", claim.n_clips), films=tested)
    if claim.number is None:
        measured = words.say("evidence_undefined", tested=tested)
    else:
        measured = words.say("evidence", auc=_auc_with_interval(claim, words), tested=tested)
    doubt = words["evidence_chance"] if claim.has(NO_SKILL) else ""  # begins with a colon
    limits = without_levels_sentence(claim, words)
    return f"{measured}{doubt}. {limits}".rstrip()


def _auc_with_interval(claim: ModelEvidence, words: Words) -> str:
    """Write a model's AUC, with its interval and the interval's level if it has one."""
    auc = words.number(claim.known_number())
    if claim.interval is None:
        return auc
    ends = words.numbers(claim.interval)
    level = words.share(claim.interval.level)
    return words.say("evidence_interval", auc=auc, ends=ends, level=level)


def without_levels_sentence(claim: ModelClaim, words: Words) -> str:
    """Name the levels on which a model was neither calibrated nor tested; empty if there are none."""
    if not claim.has(LEVELS_LEFT_OUT):
        return ""
    return words.say("without_levels", levels=_levels_left_out(claim, words))


def evidence_note(claim: ModelEvidence, words: Words) -> str:
    """Explain the AUC of a model: how many films it is measured on, its interval, and the AUC of chance.

    Such as "95% interval over 24 films, of the models that were tested there; [...] Chance is 0.50".
    """
    if claim.number is None:
        return words["no_figure"]
    films = words.counted("count_films", claim.n_films)
    chance = words.number(AUC_OF_CHANCE)
    if claim.interval is None:
        return words.say("auc_plain", films=films, chance=chance)
    return words.say("auc_note", films=films, chance=chance, level=words.share(claim.interval.level))


def judged_sentence(claim: JudgedTime, words: Words) -> str:
    """Say how much of a film is judged, cannot be judged, and is black or credits.

    Such as "judged 80 minutes (89%), cannot be judged 4 minutes (4%), black or credits 6 minutes (7%)". If
    nothing could be read from a second on up to the film's end, that is said too.
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
    """Choose the text that says why a model cannot judge a part of a film.

    - `KEY_unlike`: the part is unlike the training films.
    - `KEY_unread`: the part could not be read.
    - `KEY`: some of the part is unlike the training films, and some could not be read.

    `unjudged` is the part, as seconds or as a share of the film, and `unread` how much of it was not read.
    """
    if not unread:
        return f"{key}_unlike"
    # Slack for rounding: both are sums over rows.
    is_all_unread = unread >= unjudged * (1 - 1e-9)
    return f"{key}_unread" if is_all_unread else key


def _black_key(key: str, claim: JudgedTime) -> str:
    """Choose the text on black and credits: `KEY_found` if a detector found them, `KEY` if a person did."""
    return f"{key}_found" if claim.has(FOUND_BY_DETECTOR) else key


def unjudged_sentence(claim: JudgedTime, words: Words) -> str:
    """Say how much of the film cannot be judged, and how much is black or credits; empty without such parts.

    There is a sentence for each, such as "6 minutes, 7% of the film: black or credits (dotted), which are not
    counted." A part of less than half a second is not mentioned. A part cannot be judged if it is unlike the
    training films or could not be read; if nothing could be read from some time on, a sentence says so.
    """
    shares = time_shares(claim, words)
    unjudged_s = claim.unlike_s  # those that could not be read are among them
    black_s = claim.nothing_s
    unjudged, black = words.durations(unjudged_s, black_s)
    sentences = []
    if _has_unjudged_part(claim):
        key = _unjudged_key("sure_unjudged", unjudged=unjudged_s, unread=claim.unread_s)  # says why
        sentences.append(words.say(key, time=unjudged, share=shares.unjudged))
    if claim.unread_from_s is not None:
        sentences.append(words.say("sure_unread_from", start=clock(claim.unread_from_s)))
    has_black_part = black_s >= MIN_SAID_S
    if has_black_part:
        sentences.append(words.say(_black_key("sure_nothing", claim), time=black, share=shares.black))
    return " ".join(sentences)


def _has_unjudged_part(claim: JudgedTime) -> bool:
    """Whether a part of the film that is long enough to be said cannot be judged."""
    # Without calibration all is unjudged, which other sentences say.
    return claim.unlike_s >= MIN_SAID_S and not claim.has(UNCALIBRATED)


def unjudged_caveat(claim: JudgedTime, words: Words) -> str:
    """Say which share of the film has no score because the model cannot judge it, and why; empty if none."""
    if not _has_unjudged_part(claim):
        return ""
    key = _unjudged_key("caveat_unlike", claim.unlike_s, claim.unread_s)
    return words.say(key, share=time_shares(claim, words).unjudged)


def unjudged_legend(claim: JudgedTime, words: Words) -> str:
    """Say what is drawn as what the model cannot judge: unlike the training films, not read, or both."""
    return words[_unjudged_key("legend_unlike", claim.unlike_s, claim.unread_s)]


def black_caveat(claim: JudgedTime, words: Words) -> str:
    """Say which share of the film has no score because it is black or credits, in which nothing is staged.

    Empty if there is no such time, or less than is worth a sentence.
    """
    black_or_credits_s = claim.nothing_s
    if black_or_credits_s < MIN_SAID_S:
        return ""
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
    """Say how many passages of a film a model marks, and what it marks them as.

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
    marked_as = _marked_as(claim.positive, lengths, words)
    is_all_marked = judged_time.judged_s - claim.marked_s < MIN_SAID_S
    return words.say(
        "sentence" if claim.number > 1 else "sentence_one",
        judged_part=_judged_part(claim, lengths, words),
        n=round(claim.number),
        time=lengths.marked,
        reaching=marked_as.reaching,
        as_what=marked_as.as_what,
        all_marked=words["marked_all"] if is_all_marked else "",
        frequent=_frequent_concepts(claim.concepts, words),
    )


class _MarkedAs(NamedTuple):
    """Two parts of the sentence on passages, which stand behind their length.

    Attributes
    ----------
    reaching : str
        Such as " (9 minutes of them at its threshold or above)"; empty if there is nothing to add.
    as_what : str
        Such as "as “S”", or "in which it finds “Look”".
    """

    reaching: str
    as_what: str


def _marked_as(positive: Positive, lengths: MarkedLengths, words: Words) -> _MarkedAs:
    """Write what passages are marked as, and how much of their time reaches the threshold.

    The probability may fall below the threshold for a short time within a passage. A level is still marked in
    all of it, and brackets say how much reaches the threshold: "(9 minutes of them at its threshold or above)
    ... as “Sure”". A concept is found only where the threshold is reached, and so both are one phrase, in
    `as_what`: "in 9 minutes of which, at its threshold or above, it finds “Look”". If all of the time reaches
    the threshold, nothing is said of it.
    """
    meanings = _meanings(positive, words)
    # The lengths are compared as they are written: a difference that rounding hides is not mentioned.
    is_partly_below_threshold = lengths.reaching != lengths.marked
    if positive.is_concept:
        key = "marked_concept_called" if is_partly_below_threshold else "marked_concept"
        as_what = words.say(key, positive=meanings, reaching=lengths.reaching)
        return _MarkedAs(reaching="", as_what=as_what)
    reaching = ""
    if is_partly_below_threshold:
        reaching = words.say("sentence_called", reaching=lengths.reaching)
    return _MarkedAs(reaching=reaching, as_what=words.say("as_level", positive=meanings))


def _none_marked_sentence(claim: MarkedPassages, lengths: MarkedLengths, words: Words) -> str:
    """Say that a model marks no passage, and what reaches its threshold but is too short for one."""
    key = "sentence_none_concept" if claim.positive.is_concept else "sentence_none"
    judged_part = _judged_part(claim, lengths, words)
    text = words.say(key, judged_part=judged_part, as_what=_meanings(claim.positive, words))
    short_places = short_places_phrase(claim, words)
    return f"{text} {_capitalised(short_places)}." if short_places else text


def _frequent_concepts(concepts: Sequence[FrequentConcept], words: Words) -> str:
    """Name the concepts that are seen in half of the passages' time or more; empty without any.

    Such as "; each in at least half of the marked time can be seen, in its favour: Look and Body". The word
    "each" says that they need not be seen at the same time.
    """
    if not concepts:
        return ""
    names = [_frequent_concept(concept, words) for concept in concepts[:MAX_NAMES]]
    if len(concepts) > MAX_NAMES:
        names.append(words.counted("more_concepts", len(concepts) - MAX_NAMES))
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

    Such as "S (Sure: objectification is certain)". If a program planted the labels of its training, the text
    says so in place of the codebook's meaning.
    """
    if not positive.meanings:
        return words.say("quoted", text=positive.task_title)
    named = []
    for meaning in positive.meanings:
        name = words.translated(meaning.name)
        title = words.translated(meaning.title)
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
    """Begin a sentence with what a model can judge of a film, in one of four ways.

    - All: "The model judges all of this film (90 minutes) and".
    - All but what could not be read: "The model judges all that could be read of this film (88 minutes) and".
    - A part: "Of the 70 minutes that it can judge (78% of the film; 5 minutes of black or credits) the
      model".
    - Little: a sentence of its own, "The model can judge 9 minutes of this film (10%); it says nothing of the
      rest.", and then "In the time that it can judge it".
    """
    judged_time = claim.judged
    model = words["the_model"]
    if claim.is_one_of_several:
        model = words.say("the_model_named", name=claim.who[0])
    has_black_part = judged_time.nothing_s >= MIN_SAID_S
    black = ""
    if has_black_part:
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
    """Say how many passages the lower and the upper edge of the 80 % band give, and how many are listed."""
    note = words.say("segments_note", low=claim.at_low_edge, high=claim.at_high_edge, n=claim.n_listed)
    short = short_places_phrase(claim, words)
    return f"{note}. {_capitalised(short)}" if short else note


def marked_count(claim: MarkedPassages, words: Words) -> str:
    """Write a table's cell with the number of passages that a model marks, and what is too short for one."""
    count = words.counted("passages", round(claim.number or 0))
    short = short_places_phrase(claim, words)
    return f"{count} ({short})" if short else count


def short_places_phrase(claim: MarkedPassages, words: Words) -> str:
    """Say how much time reaches the threshold in places too short for a passage; empty if hardly any does."""
    if claim.short_s < MIN_SAID_S:
        return ""
    time = words.duration(claim.short_s)
    return words.say("short_places", time=time, least=words.seconds(MIN_S))


def passage_sentence(claim: Passage, words: Words) -> str:
    """Say where a passage is, its probability with the band, and what speaks for it and against it.

    Such as "3. 0:10:20–0:11:05: 0.62 [0.41, 0.80]. For it: more Look than usual."
    """
    number = f"{claim.name}. " if claim.name else ""  # a span that somebody marked has none
    text = f"{number}{span_ends(claim.time)}: {passage_p(claim, words)}"
    below = below_phrase(claim, words)
    if below:
        text = f"{text} ({below})"
    reasons = reasons_sentence(claim.reasons, words)
    return f"{text}. {reasons}".rstrip()


def below_phrase(claim: Passage, words: Words) -> str:
    """Say that all of a passage is below the threshold, or that its mean is; empty if its mean reaches it.

    Such as "below the threshold, 0.50". The threshold is written if it is known.
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
    """Write the ends of a span, such as "0:10:20–0:11:05"."""
    return clock_span(time.start_s or 0.0, time.end_s or 0.0)


def passage_p(claim: Passage, words: Words) -> str:
    """Write a passage's probability and its band, such as "0.62 [0.41, 0.80]"."""
    p = passage_value(claim, words)
    band = passage_band(claim, words)
    return f"{p} [{band}]" if band else p


def passage_length(claim: Passage, words: Words) -> str:
    """Write how long a passage is, and how much of it is judged if not all is: "45 s, 30 s of it judged".

    The length may be a second off the difference of the start and end that are written, as these are rounded.
    """
    in_part = judged_in_part(claim, "length_judged", words)
    if in_part:
        return in_part
    return words.duration(claim.time.seconds or 0.0)


def judged_in_part(claim: Passage, key: str, words: Words) -> str:
    """Write how long a passage is and how much of it is judged, by the text `key`; empty if all of it is.

    Less than half a second without a probability is too short for a text to mention.
    """
    length_s = claim.time.seconds or 0.0
    unjudged_s = length_s - claim.judged_s
    if unjudged_s < MIN_SAID_S:
        return ""
    length, judged = words.durations(length_s, claim.judged_s)
    return words.say(key, length=length, judged=judged)


def unjudged_span_sentence(claim: UnjudgedSpan, words: Words) -> str:
    """Say that a span has no probability, and why."""
    return words.say("span_unjudged", why=no_prediction_phrase(claim.conditions[0], words))


def passage_value(claim: Passage, words: Words) -> str:
    """Write a passage's probability alone."""
    return words.probability(claim.known_number())


def passage_spoken(claim: Passage, words: Words) -> str:
    """Write a passage's probability and band in words, for screen readers."""
    if claim.interval is None:
        return passage_value(claim, words)
    return words.spoken(claim.known_number(), claim.interval.low, claim.interval.high)


def passage_band(claim: Passage, words: Words, between: str = "") -> str:
    """Write the band of a passage's probability; `between` replaces the language's sign between its ends."""
    if claim.interval is None:
        return ""
    return words.band(claim.interval.low, claim.interval.high, between)


def passage_label(claim: Passage, words: Words) -> str:
    """Write a passage as a label for other tools, such as "3. S 0.62 [0.41, 0.80]; Look, Body; black bars".

    The label has its number, level and probability, the concepts seen in it, whether it is below the
    threshold, and its flags. If the probability is that of a part of it, its length and that of the part are
    written too.
    """
    number = claim.name
    level = words.translated(claim.what).replace(" / ", "/")  # several levels, such as "EN / S", as one word
    parts = [f"{number}. {level} {passage_p(claim, words)}"]
    in_part = judged_in_part(claim, "length_judged", words)
    if in_part:
        parts.append(in_part)
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
    """Cite the probability of a level in a span by a model, with its band; or say why there is none.

    Clauses behind it say what limits the number.

    Parameters
    ----------
    claim : Passage or UnjudgedSpan
    positive : str
        The level, with its meaning.
    model : str
        The model's title and digest.
    windows : OtherWindows or None
        The claim that windows are not as long as the model's clips, if that is so.
    words : Words
    planted : str
        The sentence that a program gave the labels of the model's training (`planted_sentence`); empty if
        people gave them.
    """
    if isinstance(claim, UnjudgedSpan):
        why = no_prediction_phrase(claim.conditions[0], words)
        return words.say("cited_none", positive=positive, why=why, model=model)
    parts = [
        words.say("cited", positive=positive, p=passage_p(claim, words), model=model),
        below_phrase(claim, words),
        judged_in_part(claim, "cited_judged", words),
        *_warnings(claim, words),
        _windows_of_citation(windows, words),
        _as_clause(planted),
    ]
    return words["semicolon"].join(part for part in parts if part)


def _windows_of_citation(claim: OtherWindows | None, words: Words) -> str:
    """Say that windows are not as long as the model's clips, in a clause; empty if they are."""
    if claim is None:
        return ""
    window = words.seconds(claim.known_number())
    return words.say("cited_windows", window=window, clips=_lengths_of_clips(claim, words))


def moved_sentence(claim: Moved, words: Words) -> str:
    """Say how learning changed a passage's probability: "0:10:20–0:11:05: 0.41 → 0.62"."""
    before = words.probability(claim.before)
    after = words.probability(claim.known_number())
    return f"{span_ends(claim.time)}: {before} → {after}"


def at_usual_sentence(claim: AtUsual, words: Words) -> str:
    """Write a span's probability, and what it would be with a concept at its usual value: "0.62 → 0.41".

    A probability that rounds to 0.00 is written in the short form ("short_hundredth"), such as "<0.01".
    """
    p = words.probability(claim.before, "short_hundredth")
    p_at_usual = words.probability(claim.known_number(), "short_hundredth")
    return f"{p} → {p_at_usual}"


def no_passage_sentence(claim: NoPassage, words: Words) -> str:
    """Say that no passage reaches the threshold."""
    return words.say("export_none", p=words.probability(claim.known_number()))


def flagged_sentence(claim: FlaggedTime, words: Words) -> str:
    """Say which share of a film has a flag, such as "black bars: 12% of the film"."""
    flag = words[f"flag_{claim.what}"]
    return words.say("flagged_time", flag=flag, share=words.share(claim.known_number()))


def windows_sentence(claim: OtherWindows, words: Words) -> str:
    """Say that a film's windows are of another length than the clips that made the model.

    These are the clips that it was trained on, or those by which its probabilities were calibrated.
    """
    length_of_windows_s = claim.known_number()
    return words.say(
        "another_window", window=words.seconds(length_of_windows_s), clips=_lengths_of_clips(claim, words)
    )


def _lengths_of_clips(claim: OtherWindows, words: Words) -> str:
    """Write the median lengths of the clips of a model's training and calibration; at least one is known.

    Such as "trained on clips of 46 s and calibrated on clips of 30 s".
    """
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
    """Write how well a concept is found, beside chance: "AP 0.41, chance 0.12"."""
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
    """Write the mean of a variable of staging with its unit, and how many windows have it if not all do.

    Such as "12 a minute, of 80 windows of 120".
    """
    mean = words.say(f"{claim.what}_mean", value=words.number(claim.known_number(), claim.digits))
    if claim.n_known == claim.n_windows:
        return mean
    known = words.counted("count_windows", claim.n_known)
    return words.say("mean_of_windows", mean=mean, windows=known, all=claim.n_windows)


def figure_threshold_sentence(threshold_p: float, words: Words) -> str:
    """Say which threshold the passages of a figure reach."""
    return words.say("figure_threshold", value=words.probability(threshold_p))


def threshold_label(p: float, words: Words) -> str:
    """Write the threshold of a model beside its line."""
    return words.say("threshold", value=words.probability(p))


# --- reasons
# ---------------------------------------------------------------------------
def reasons_sentence(reasons: Sequence[ConceptReason], words: Words, maximum: int | None = None) -> str:
    """Say which concepts speak for a passage, against it, and for it in some places and against it in others.

    Such as: "For it: more Look than usual; less Voice than usual. Against it: more Body than usual."

    Parameters
    ----------
    reasons : sequence of ConceptReason
        Those that change the probability too little (`ConceptReason.moves`) are not named.
    words : Words
    maximum : int, optional
        Largest number of concepts that are named on each side; the others are counted.
    """
    if not reasons:
        return ""
    sentences = []
    for side in ("why_for", "why_against", "why_both"):  # keys of the texts
        reasons_of_side = [reason for reason in reasons if reason.moves and _side_key(reason) == side]
        if reasons_of_side:
            sentences.append(words.say(side, reasons=_list_of_reasons(reasons_of_side, words, maximum)))
    if sentences:
        return " ".join(sentences)

    # No concept changes the probability enough. Of a tree's earlier scores the changes are not known.
    are_changes_unknown = all(reason.number is None for reason in reasons)
    if are_changes_unknown:
        return words.say("why_nothing_weighs", least=words.number(MIN_CONTRIBUTION))
    return words.say("why_nothing", least=words.number(MIN_CHANGE))


def _list_of_reasons(reasons: Sequence[ConceptReason], words: Words, maximum: int | None) -> str:
    """Write at most `maximum` reasons, those with the largest changes first, and how many more there are."""
    ranked = sorted(reasons, key=_sort_key_of_reason)
    phrases = [reason_phrase(reason, words) for reason in ranked[:maximum]]
    n_more = len(ranked) - len(phrases)
    if n_more:
        phrases.append(words.counted("more_concepts", n_more))
    return words["semicolon"].join(phrases)


def _sort_key_of_reason(reason: ConceptReason) -> float:
    """Return the key that sorts reasons by size, the largest first.

    The size is the change of the passage's probability due to the concept. Scores of trees that earlier
    versions wrote do not hold it: then the size is what the concept adds to the logit.
    """
    change_of_p = reason.number
    size = abs(reason.contribution if change_of_p is None else change_of_p)
    # Rounded, as the last digits differ between machines: equal reasons keep their order.
    return -round(size, DECIMALS)


def _side_key(reason: ConceptReason) -> str:
    """Choose the text that a reason is listed in: for a passage, against it, or both."""
    if reason.has(BOTH_SIDES):
        return "why_both"
    return "why_for" if reason.is_for else "why_against"


def reasons_note(words: Words, *, has_usual: bool, has_changes: bool) -> str:
    """Explain the list of reasons: what a reason for or against a passage is, and the least that is named.

    What the reasons are depends on the model:

    - It knows usual values of its concepts (`has_usual`): a reason is how much the probability changes if a
      concept is moved to its usual value.
    - It does not, such as a tree, but its scores hold changes of the probability (`has_changes`): a concept
      is moved to its values in the training clips.
    - It does not, and its scores hold no changes, as in earlier versions: a reason is what a concept adds to
      the logit.
    """
    if has_usual:
        return words.say("reasons_what", least=words.number(MIN_CHANGE))
    if has_changes:
        return words.say("reasons_what_moved", least=words.number(MIN_CHANGE))
    return words.say("reasons_what_weights", least=words.number(MIN_CONTRIBUTION))


def reason_sentence(claim: ConceptReason, words: Words) -> str:
    """Say whether a concept speaks for a passage or against it, or that it does too little.

    Such as "For it: more Look than usual.", or "It moves the probability by less than 0.01." If the change of
    the probability is not known, what counts is what the concept adds to the logit.
    """
    is_enough_to_be_named = claim.moves
    if is_enough_to_be_named:
        return reasons_sentence([claim], words)
    is_change_unknown = claim.number is None
    if is_change_unknown:
        return words.say("why_little_weighs", least=words.number(MIN_CONTRIBUTION))
    return words.say("why_little", least=words.number(MIN_CHANGE))


def reason_phrase(claim: ConceptReason, words: Words) -> str:
    """Write a reason, such as "more Look than usual (0.62, 0.41 at its usual value)".

    The numbers are the concept's probability in the passage, and at its usual value. If they seem to say the
    contrary of "more", the brackets tell which mean the word is by: "(by the mean of its values; its mean
    probability is 0.38, 0.41 at its usual value)".
    """
    phrase: str = words.translated(claim.what)
    if claim.amount:  # "more", "less" or "mixed"
        phrase = words.say(f"why_{claim.amount}", concept=claim.what)

    # Notes in brackets: the concept's probability beside the usual one, and that it is hardly found
    notes = []
    if claim.usual_p is not None:
        p = words.probability(claim.p)
        usual_p = words.probability(claim.usual_p)
        are_written_alike = p == usual_p
        if not are_written_alike:
            key = "why_parted" if _p_contradicts_amount(claim, claim.usual_p) else "why_usual"
            notes.append(words.say(key, p=p, usual=usual_p))
    if claim.has(NEAR_CHANCE):
        notes.append(words["why_near_chance"])
    return f"{phrase} ({', '.join(notes)})" if notes else phrase


def _p_contradicts_amount(claim: ConceptReason, usual_p: float) -> bool:
    """Whether a concept is called "more" than usual with a lower mean probability than usual, or the reverse.

    Both can be true: the amount compares the mean of the concept's values with the usual value, and
    probabilities are not proportional to values.
    """
    if claim.amount not in ("more", "less"):
        return False
    amount_by_p = "more" if claim.p > usual_p else "less"
    return claim.amount != amount_by_p


def classes_sentence(claims: Sequence[ClassSeen], words: Words) -> str:
    """Say which classes classifiers find more probable in a span than in its film; empty without claims.

    Such as "The classifier places finds more probable here than in the film: kitchen (0.40, film 0.05)."
    """
    sentences = []
    for who in dict.fromkeys(claim.who for claim in claims):
        phrases = [class_phrase(claim, words) for claim in claims if claim.who == who]
        names = words["semicolon"].join(phrases)
        sentences.append(words.say("classes", classifier=", ".join(who), names=names))
    return " ".join(sentences)


def class_sentence(claim: ClassSeen, words: Words) -> str:
    """Say that a classifier finds a class more probable in a span than in its film."""
    return classes_sentence([claim], words)


def class_phrase(claim: ClassSeen, words: Words) -> str:
    """Write a class with its probability beside the film's, such as "kitchen (0.40, film 0.05)"."""
    p = words.probability(claim.known_number())
    usual = words.probability(claim.usual_p, "short_hundredth")
    return words.say("class_p", name=claim.what, p=p, usual=usual)


def reason_p(claim: ConceptReason, words: Words) -> str:
    """Write the probability of a concept in a passage: "0.62", or "not seen, 0.10"."""
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
    """Say in a clause why a film, or a span of it, has no prediction, such as "it could not be read".

    `reason` is the condition of the claim that says so: a key of `NO_PREDICTION`.
    """
    return words[NO_PREDICTION[reason]]


def no_place_phrase(reason: str, words: Words) -> str:
    """Say in a clause why a film has no passage.

    It has no prediction, and `reason` is the condition that says why. Or `reason` is empty, and no place of
    the film is long enough for a passage.
    """
    if reason:
        return no_prediction_phrase(reason, words)
    return words.say("no_probability_short", n=words.seconds(MIN_S))


# --- what a model does not tell apart
# ---------------------------------------------------------------------------
def same_sentence(claim: SameProbability, words: Words) -> str:
    """Say that a model gives the same probability to all places of a film, and so does not tell them apart.

    If probabilities differ a little, the lowest and the highest are written, with three decimals.
    """
    least, most = words.number(claim.least, 3), words.number(claim.most, 3)
    if least != most:
        return words.say("nearly_same_probability", model=claim.who[0], least=least, most=most)
    p = words.probability(claim.known_number())
    return words.say("same_probability", model=claim.who[0], p=p)


def same_share_sentence(claim: SameShare, words: Words) -> str:
    """Say that a model expects the same share of all films, and so does not tell them apart."""
    share = words.share(claim.known_number())
    films = words.counted("count_films", claim.n_films)
    return words.say("same_share", model=claim.who[0], share=share, films=films)


# --- shares that a model expects
# ---------------------------------------------------------------------------
def expected_sentence(claim: ExpectedShare, words: Words) -> str:
    """Say which share of a film's time a model expects, with its interval; or why it expects none.

    Such as "expects 17% of the time that it can judge, as S; 80% bracket of new films like those of the
    training [9%, 28%]; on films left out the share was off by 4 percentage points on average".
    """
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
    """Say that an interval is wider because the film is short: its judged time is that of few windows.

    The number may be a fraction, such as 2.5: it is the judged time over the length of a window.
    """
    n = round(n_windows, 1)
    if n.is_integer():
        return words.counted("bracket_few", int(n))  # 1 has a text of its own, in the singular
    return words.say("bracket_few", n=words.number(n, 1))


def no_share_sentence(claim: ExpectedShare, words: Words) -> str:
    """Say why a model has no share of a film, such as "No rate: the film is black or credits".

    The claim's conditions are sorted, the gravest first. The first one that is a reason decides.
    """
    reasons = [condition for condition in claim.conditions if condition in NO_SHARE]
    if not reasons:
        return words.say("no_rate", reason=claim.reason)  # in the words of the film's record
    gravest = reasons[0]
    key = NO_SHARE[gravest]
    if gravest == LITTLE_JUDGED:
        key = _unjudged_key(key, claim.unlike, claim.unread)
    return words.say(key, share=words.share(claim.unlike), levels=_levels_left_out(claim, words))


def expected_note(claim: ExpectedShare, words: Words) -> str:
    """Explain the interval of an expected share (its "bracket").

    It says what the interval holds, that few windows make it wider, how large the errors on films left out
    were, and how many clips of each level the calibration was fitted on.
    """
    parts = [words["no_bracket"] if claim.interval is None else words["bracket"]]
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
    """Write the mean error of the model's expected shares on films left out.

    Empty if it is not known, or if too little of this film is judged for an expected share.
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
    """Say how far two experts agree on what a model finds: second by second, and on a film's share.

    Such as "Two experts who marked whole films, MObyGaze (20 films), agreed on S second by second with a
    kappa of 0.36, and on a film's share of it with a rank correlation of 0.62 [...]".
    """
    rank_correlation = words.number(claim.rank)
    level = ""
    if claim.rank_interval is not None:
        rank_correlation = f"{rank_correlation} [{words.numbers(claim.rank_interval)}]"
        level = f" ({words.share(claim.rank_interval.level)})"
    return words.say(
        "human",
        corpus=claim.who[0],
        positive=claim.what,
        kappa=words.number(claim.known_number()),
        rank=rank_correlation,
        level=level,
    )


def experts_note(claim: Experts, words: Words) -> str:
    """Say how far two experts of a corpus agree on the positive levels second by second.

    Such as "The experts of MObyGaze agreed on S second by second with a kappa of 0.44."
    """
    corpus = claim.who[0]
    positive_levels = claim.what
    kappa = words.number(claim.known_number())
    return words.say("sure_human", corpus=corpus, positive=positive_levels, kappa=kappa)


def boundaries_sentence(claim: Experts, words: Words) -> str:
    """Say how seldom experts agree on boundaries."""
    return words.say("about_4", boundary=words.number(claim.boundary))


def experts_caveat(claim: Experts, words: Words) -> str:
    """Say how far two experts agree second by second, and on boundaries."""
    return words.say(
        "caveat_human",
        corpus=claim.who[0],
        positive=claim.what,
        kappa=words.number(claim.known_number()),
        boundary=words.number(claim.boundary),
    )


def judged_share_sentence(claim: JudgedShare, words: Words) -> str:
    """Write the share of a film that judges would call positive, with its interval and its counts.

    Such as: "AB would mark as “S” 17% [9%, 28%] of the film without black and credits, 95% interval, from
    60 windows judged blindly, of 130 that do not overlap (positive: 11 of 60)". Clauses follow if a model
    corrected the share, and if the judges of a panel may agree no better than chance.
    """
    text = words["semicolon"].join(
        [_share_from_windows(claim, words), *_corrections(claim, words), *panel_doubts(claim, words)]
    )
    if claim.has(SEVERAL_DEFINITIONS):
        return under_definition(claim, text, words)
    return text


def _share_from_windows(claim: JudgedShare, words: Words) -> str:
    """Write who would mark which share, of which time, and how many windows it is estimated from."""
    key = "rate_panel" if claim.is_of_panel else "rate_judge"
    ends_of_interval = ""
    level = ""
    if claim.interval is None:  # all windows were judged
        key = f"{key}_all"
    else:
        ends_of_interval = words.shares(claim.interval)
        level = words.share(claim.interval.level)
    return words.say(
        key,
        who=words.listed([words.judge(name) for name in claim.who]),
        share=words.share(claim.known_number()),
        time=judged_time_phrase(claim, words),
        ends=ends_of_interval,
        level=level,
        marked=as_positive(claim, claim.what, words),
        positives=words.listed([str(n) for n in claim.positives]),
        n=claim.n,
        all=_all_windows(claim, words),
        windows=_judged_windows(claim, words),
    )


def under_definition(claim: JudgedShare | NoJudgedShare | PairKappa, text: str, words: Words) -> str:
    """Begin a sentence with the definition that people judged under.

    It is named by its codebook and version; if these are not known, by the start of its digest.
    """
    if claim.definition_name:
        definition = words.say("definition_named", name=claim.definition_name)
    else:
        definition = words.say("definition_digest", digest=claim.definition[:12])
    return words.say("rate_under", definition=definition, rate=text)


def _corrections(claim: JudgedShare, words: Words) -> list[str]:
    """Say that a model, or labels in its place, corrected a share; an empty list if nothing did.

    Such as "the share is corrected by linear".
    """
    if not claim.is_corrected:
        return []
    key = "rate_corrected_labels" if claim.is_of_labels else "rate_corrected"
    return [words.say(key, model=words.judge(claim.model))]


def _judged_windows(claim: JudgedShare, words: Words) -> str:
    """Write how many windows were judged (by each of a panel), and whether blindly and surely."""
    key = "windows_each_judged" if claim.is_of_panel else "windows_judged_so"
    blindly = words["blindly_surely" if claim.has(NOT_SURE) else "blindly"]
    return words.counted(key, claim.n, blindly=blindly)


def _all_windows(claim: JudgedShare, words: Words) -> str:
    """Write how many windows the film has that do not overlap, without those left out as not sure."""
    return words.counted("of_windows_sure" if claim.has(NOT_SURE) else "of_windows", claim.n_windows)


def judged_time_phrase(claim: JudgedShare | ShareSoFar, words: Words) -> str:
    """Write the time that a judged share covers, such as "the film without black and credits".

    Windows of which judges were not sure are excluded too; if they are more than a fifth, the length of the
    rest is written. If a part of the film could not be read, the text says that it covers the other part.
    """
    suffix = "_read" if claim.has(PARTLY_READ) else ""  # of the keys of such texts
    if not claim.has(NOT_SURE):
        return words[f"of_content{suffix}"]
    if _is_much_unsure(claim):
        return _little_time_phrase(claim, words)
    windows = words.counted("unsure", claim.n_unsure, time=words.duration(claim.unsure_s))
    if len(claim.who) > 1:
        return words.say(f"of_sure_panel{suffix}", windows=windows)
    who_was_not = words.say("unsure_judge", who=words.judge(claim.who[0]))
    return words.say(f"of_sure{suffix}", windows=windows, who=who_was_not)


def _is_much_unsure(claim: JudgedShare | ShareSoFar) -> bool:
    """Whether the windows of which judges were not sure are more than a fifth of the content to judge."""
    covered_s = claim.time.seconds  # of the share: all content but the windows of which they were not sure
    if covered_s is None:
        return False
    content_s = covered_s + claim.unsure_s
    return claim.unsure_s > MAX_UNRELIABLE_SHARE * content_s


def _little_time_phrase(claim: JudgedShare | ShareSoFar, words: Words) -> str:
    """Write of which time a share is, where that is little of the film, as judges were often not sure.

    If all windows were judged, it is "the 9 minutes that AB was sure of, without 30 windows". If some were
    not judged, these count among the 9 minutes, of which AB then is not sure. So they are described by what
    is left out: "the 9 minutes that are left without 30 windows of which AB was not sure". Of several judges,
    both have another text.
    """
    sure, unsure = words.durations(claim.time.seconds or 0.0, claim.unsure_s)
    is_of_panel = len(claim.who) > 1  # of several judges
    if claim.has(ALL_JUDGED):
        key = "of_little_panel" if is_of_panel else "of_little_judge"
    else:
        key = "of_little_left_panel" if is_of_panel else "of_little_left_judge"
    windows = words.counted("unsure", claim.n_unsure, time=unsure)
    return words.say(key, sure=sure, windows=windows, who=words.judge(claim.who[0]))


def panel_doubts(claim: JudgedShare, words: Words) -> list[str]:
    """Say that judges of a panel may agree no better than chance, with the names of the pairs if some do.

    If all pairs do, it is "they agree less than by chance", and if only some do, "AB–CD agree less than by
    chance".
    """
    doubts = []
    for condition, key in PANEL_DOUBTS.items():
        if not claim.has(condition):
            continue
        # The panel's condition may say that some pairs have a doubt (`SOME_LESS`). Each of these pairs has
        # the condition that says so of a pair (`AGREE_LESS`), which is also the panel's if all pairs have it.
        condition_of_pair = OF_SOME.get(condition, condition)
        pairs = [pair for pair in claim.agreement if pair.has(condition_of_pair)]
        doubts.append(words.say(key, pairs=_pair_names(pairs, words)))
    return doubts


def _pair_names(pairs: Sequence[PairKappa], words: Words) -> str:
    """Name some pairs of judges, and say how many more there are: "AB–CD, AB–EF and 2 more pairs"."""
    names = ["–".join(words.judge(name) for name in pair.who) for pair in pairs[:MAX_NAMES]]
    if len(pairs) > MAX_NAMES:
        names.append(words.counted("more_pairs", len(pairs) - MAX_NAMES))
    return words.listed(names)


def judged_share_line(claim: JudgedShare, words: Words) -> str:
    """Write a judged share (`judged_share_sentence`), what the model saved, and what it expected alone.

    Such as "AB would mark as S 17% [...]; with linear as narrow as 90 windows judged without it; linear alone
    expected 20% of the 80 minutes that it can judge". The model saves judgements if an interval as narrow
    would need more windows without it (`worth`).
    """
    parts = [judged_share_sentence(claim, words)]
    if claim.interval is not None and claim.worth is not None:
        parts.append(words.say("rate_worth", model=claim.model, worth=rounded(claim.worth)))
    if claim.expected is not None and claim.expected_s is not None:
        key = "rate_marked" if claim.is_of_labels else "rate_expected"
        share = words.share(claim.expected)
        time = words.duration(claim.expected_s)
        parts.append(words.say(key, model=claim.model, share=share, time=time))
    return words["semicolon"].join(parts)


def judged_share_what(claim: JudgedShare, positive: str, words: Words) -> str:
    """Write the label of a judged share: by whom, of which time, and from how many windows."""
    return words.say(
        "corrected_panel" if claim.is_of_panel else "corrected",
        who=words.listed([words.judge(name) for name in claim.who]),
        time=judged_time_phrase(claim, words),
        marked=as_positive(claim, positive, words),
        windows=_judged_windows(claim, words),
    )


def judged_share_note(claim: JudgedShare, others: Sequence[FilmClaim], words: Words) -> str:
    """Explain a judged share: its interval, how a model changed it, and what else is known of its judges.

    Parameters
    ----------
    claim : JudgedShare
    others : sequence of FilmClaim
        The other claims on the film's judges: each one's own share beside a panel's, how far they agree.
    words : Words
    """
    return " ".join(
        [
            *_interval_sentences(claim, words),
            *[_as_sentence(clause) for clause in _corrections(claim, words)],
            *alone_expected_sentences(claim, words),
            *[_as_sentence(clause) for clause in panel_doubts(claim, words)],
            *judges_sentences(others, words),
            *why_not_as_computed([claim, *others], words),
        ]
    )


def _interval_sentences(claim: JudgedShare, words: Words) -> list[str]:
    """Explain the interval of a judged share, and say how many windows it would take without the model.

    A share without an interval is of a film whose windows are all judged, which is said instead.
    """
    if claim.interval is None:
        return [words["judged_all_panel" if claim.is_of_panel else "judged_all_judge"]]
    sentences = [words.say("interval_of", level=words.share(claim.interval.level))]
    if claim.worth is not None:
        sentences.append(words.say("worth", worth=rounded(claim.worth)))
    return sentences


def _as_sentence(clause: str) -> str:
    """Write a clause as a sentence: with a capital and a full stop."""
    return f"{_capitalised(clause)}."


def why_not_as_computed(claims: Sequence[FilmClaim], words: Words) -> list[str]:
    """Explain why shares are not what a reader would compute from the numbers beside them.

    Of each of two differences there is a sentence, if numbers show it:

    - The share of all judges together is not the mean of the judges' shares.
    - A share is not the number of windows called positive, divided by the number of windows judged.
    """
    shares = [claim for claim in claims if isinstance(claim, JudgedShare)]
    return [*_why_not_mean_of_judges(shares, words), *_why_not_counts(shares, words)]


def _why_not_mean_of_judges(shares: Sequence[JudgedShare], words: Words) -> list[str]:
    """Explain why a panel's share is not the mean of its judges' shares; an empty list if it needs no words.

    It is of other windows, those that all of the judges judged; or it is of the same ones, but each share is
    an estimate of its own.
    """
    has_panel = any(share.is_of_panel for share in shares)
    numbers_of_windows = {share.n for share in shares}
    if has_panel and len(numbers_of_windows) > 1:
        return [words["own_shares"]]
    if _differs_from_mean_of_judges(shares, words):
        return [words["each_estimated"]]
    return []


def _why_not_counts(shares: Sequence[JudgedShare], words: Words) -> list[str]:
    """Explain why a share is not the share of windows called positive; an empty list if all shares are.

    Windows count by their content, and a model, or labels in its place, may correct the shares.
    """
    if not any(_differs_from_counts(share, words) for share in shares):
        return []
    corrected = [share for share in shares if share.is_corrected]
    if not corrected:
        return [words["windows_by_content"]]
    first = corrected[0]  # the same model, or the same labels, correct all of them
    if first.is_of_labels:
        return [words.say("windows_corrected_by_labels", who=words.judge(first.model))]
    return [words["windows_corrected"]]


def _differs_from_mean_of_judges(shares: Sequence[JudgedShare], words: Words) -> bool:
    """Whether the panel's share, as written, differs from the mean of its judges' shares."""
    of_panel = [share.number for share in shares if share.is_of_panel and share.number is not None]
    of_judges = [share.number for share in shares if not share.is_of_panel and share.number is not None]
    if not of_panel or len(of_judges) < 2:
        return False
    mean_of_judges = sum(of_judges) / len(of_judges)
    return words.share(of_panel[0]) != words.share(mean_of_judges)


def _differs_from_counts(claim: JudgedShare, words: Words) -> bool:
    """Whether a share, as written, differs from the share of its windows that judges called positive."""
    if claim.number is None or not claim.n or not claim.positives:
        return False
    mean_positives = sum(claim.positives) / len(claim.positives)  # over the judges
    positive_share = mean_positives / claim.n
    return words.share(claim.number) != words.share(positive_share)


def alone_expected_sentences(claim: JudgedShare, words: Words) -> list[str]:
    """Say which share the model, or labels in its place, gave without judgements; an empty list if none.

    Such as "The model alone expected 20% of the 80 minutes that it can judge."
    """
    if claim.expected is None or claim.expected_s is None:
        return []
    expected = words.share(claim.expected)
    time = words.duration(claim.expected_s)
    if claim.is_of_labels:
        return [words.say("alone_marked", model=claim.model, expected=expected, time=time)]
    return [words.say("alone_expected", expected=expected, time=time)]


def judges_sentences(claims: Sequence[FilmClaim], words: Words) -> list[str]:
    """Write the claims on a film's judges: their shares, then all else, and last each pair's agreement.

    Of many shares, and of many pairs, only the first are written, and the range of the others.
    """
    shares = [claim for claim in claims if isinstance(claim, JudgedShare)]
    pairs = [claim for claim in claims if isinstance(claim, PairKappa)]
    rest = [claim for claim in claims if not isinstance(claim, JudgedShare | PairKappa)]
    parts = _sentences_of_shares(shares, words)
    for claim in [*rest, *pairs[:MAX_PAIRS]]:
        without_stop = sentence(claim, words).removesuffix(".")  # only some end with a full stop
        parts.append(f"{without_stop}.")
    if len(pairs) > MAX_PAIRS:
        parts.append(_other_pairs(pairs[MAX_PAIRS:], words))
    return parts


def _sentences_of_shares(claims: Sequence[JudgedShare], words: Words) -> list[str]:
    """Write a few shares in a sentence each; of more, the first three, and the range of the others."""
    n_written = len(claims) if len(claims) <= MAX_SIDE_BY_SIDE else MAX_NAMES
    parts = [f"{judged_share_sentence(claim, words)}." for claim in claims[:n_written]]
    if n_written < len(claims):
        parts.append(other_shares_sentence(claims[n_written:], words))
    return parts


def other_shares_sentence(claims: Sequence[JudgedShare], words: Words) -> str:
    """Write the range of the shares of judges who are too many to name.

    Such as "Shares of 5 other judges: 12% to 31%."
    """
    shares = [claim.known_number() for claim in claims]
    low, high = words.share(min(shares)), words.share(max(shares))
    return words.say("other_judges", n=len(shares), low=low, high=high)


def _other_pairs(claims: Sequence[PairKappa], words: Words) -> str:
    """Write the range of the kappas of further pairs of judges, and how many pairs have none.

    Such as "Kappas of 4 other pairs: 0.10 to 0.62. Other pairs who judged too few windows for kappa: 2."
    """
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
    """Write the shares of judges who have no joint share, such as "AB 17% · CD 20%"; of many, their range.

    If a judge was not sure of some windows, the length of time that the share covers is written too.
    """
    if len(claims) > MAX_SIDE_BY_SIDE:
        numbers = [claim.known_number() for claim in claims]
        return f"{words.share(min(numbers))}–{words.share(max(numbers))}"
    return " · ".join(f"{words.judge(claim.who[0])} {_share_of_time(claim, words)}" for claim in claims)


def _share_of_time(claim: JudgedShare, words: Words) -> str:
    """Write a judge's share, such as "17%", or "17% of 80 minutes" if they were not sure of some windows.

    Their share does not cover windows of which they were not sure. The length says how much it does cover.
    """
    share = share_value(claim, words)
    covered_s = claim.time.seconds
    covers_all_content = not claim.has(NOT_SURE)
    if covers_all_content or covered_s is None:
        return share
    return words.say("own_share_of", share=share, time=words.duration(covered_s))


def side_by_side_what(claims: Sequence[JudgedShare], positive: str, words: Words) -> str:
    """Write what the shares of judges who have no share together are of (the label of `shares_side_by_side`).

    Such as "share that each of these judges would mark as S of the film without black and credits". Of many
    judges only the least and the largest share are shown, and the label says so.
    """
    is_range = len(claims) > MAX_SIDE_BY_SIDE
    return words.say(
        "corrected_range" if is_range else "corrected_each",
        marked=as_positive(claims[0], positive, words),  # the claims are of the same positive levels
        time=_time_of_each(claims, words),
        n=len(claims),
    )


def _time_of_each(claims: Sequence[JudgedShare], words: Words) -> str:
    """Write the time that the shares of single judges cover, such as "the film without black and credits".

    If a judge was not sure of some windows, these are excluded too ("and windows of which that judge was not
    sure"). If a part of the video could not be read, it is the time of "what could be read of the film".
    """
    is_any_judge_unsure = _any_has(claims, NOT_SURE)
    key = "of_sure_each" if is_any_judge_unsure else "of_content"
    is_film_partly_read = _any_has(claims, PARTLY_READ)
    if is_film_partly_read:
        key = f"{key}_read"
    return words[key]


def side_by_side_note(claims: Sequence[JudgedShare], others: Sequence[FilmClaim], words: Words) -> str:
    """Explain the shares of a film's judges where they have none together.

    The text says, in this order: each judge's share with its interval, and why they have no share together;
    the share that the model alone expects; and why shares are not what one would compute from the counts.

    `others` are the other claims on the judges, such as that they have no share together.
    """
    of_judges = judges_sentences([*claims, *others], words)
    of_model = alone_expected_sentences(claims[0], words)  # the same beside every judge's share
    why_unlike_counts = why_not_as_computed(claims, words)
    return " ".join([*of_judges, *of_model, *why_unlike_counts])


def no_judged_share_sentence(claim: NoJudgedShare, words: Words) -> str:
    """Say why a judge, or several together, have no share: how many windows were judged, and what is missing.

    Such as "AB: no share of their own: 4 windows judged blindly in the order of the draw; no window is left
    to judge".
    """
    is_of_panel = len(claim.who) > 1
    if claim.left:
        missing = words.translated(needed_windows(claim.judged, claim.left, claim.least))
    else:
        missing = words["no_window_left"]
    text = words.say(
        "no_share_panel" if is_of_panel else "no_share_judge",
        who=words.listed([words.judge(name) for name in claim.who]),
        counted=_counted_for_share(claim, words, is_of_panel=is_of_panel),
        lacks=missing,
    )
    if claim.definition:
        return under_definition(claim, text, words)
    return text


def _counted_for_share(claim: NoJudgedShare, words: Words, *, is_of_panel: bool) -> str:
    """Write how many judged windows count in a share, and how many don't as they come after a gap.

    A share takes windows in the order of the draw, and stops before the first one that was not judged (the
    gap). If the first window of all was judged under another definition only, none counts: then this is said
    in place of a number.
    """
    is_first_under_other_definition = bool(claim.definition) and not claim.judged
    if is_first_under_other_definition:
        counted = words["first_elsewhere_panel" if is_of_panel else "first_elsewhere_judge"]
    else:
        counted = counted_phrase(claim.judged, claim.sure, words, is_of_panel=is_of_panel)
    return _with_windows_after_gap(counted, claim.after_gap, words, is_of_panel=is_of_panel)


def counted_phrase(judged: int, sure: int, words: Words, *, is_of_panel: bool) -> str:
    """Write how many windows were judged blindly (by each of a panel), and how many surely if not all."""
    key = "counted_by_each" if is_of_panel else "counted"
    if sure < judged:
        key += "_sure"
    return words.counted(key, judged, judged=judged, sure=sure)


def _with_windows_after_gap(counted: str, n: int, words: Words, *, is_of_panel: bool) -> str:
    """Add to the text `counted` that n further windows were judged after the first gap; no change if n is 0.

    The first gap is the first window of the draw that was not judged. Windows of a panel after it count in no
    share of all judges, but may count in the share of one of them.
    """
    if not n:
        return counted
    key = "with_after_gap_panel" if is_of_panel else "with_after_gap"
    return words.counted(key, n, counted=counted)


def so_far_sentence(claim: ShareSoFar, words: Words) -> str:
    """Write the interval of a film's share that is valid whenever the judge stops; empty without one.

    Such as "S: between 9% and 31% of the film without black and credits, whenever you stop (95%); if this
    number had been fixed before, the interval would be 18 percentage points wide, not 22."
    """
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
    """Say on how many windows two people agree, and their kappa, and where it may be that of chance.

    Such as "AB and CD: 40 windows of 60 alike as to S (67%), kappa 0.35 [0.10, 0.58], 95% interval for
    windows like these."
    """
    text = _few_windows_of_pair(claim, words) if claim.has(TOO_FEW) else _kappa_of_pair(claim, words)
    return under_definition(claim, text, words) if claim.definition else text


def _kappa_of_pair(claim: PairKappa, words: Words) -> str:
    """Say on how many windows two people agree, and their kappa."""
    kappa = words["undefined"] if claim.number is None else words.number(claim.number)
    if claim.interval is not None:
        level = words.share(claim.interval.level)
        kappa = words.say("kappa_ends", kappa=kappa, ends=words.numbers(claim.interval), level=level)
    for doubt, key in PAIR_DOUBTS.items():
        if claim.has(doubt):
            kappa = f"{kappa} ({words[key]})"
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
    return words.counted(
        "pair_few_sure" if claim.n_unsure else "pair_few",
        claim.n,
        who=words.listed([words.judge(name) for name in claim.who]),
        alike=claim.alike,
        unsure=claim.n_unsure,
        least=MIN_SURE_WINDOWS,
        positive=claim.positive,
    )


def pairs_sentence(claim: ManyPairs, words: Words) -> str:
    """Write the median and the range of the kappas of many pairs of judges.

    Such as "Kappa of 12 pairs: 0.10 to 0.62, median 0.35."
    """
    if claim.interval is None:
        return ""
    low = words.number(claim.interval.low)
    high = words.number(claim.interval.high)
    median = words.number(claim.known_number())
    return words.counted("pairs", claim.n_pairs, middle=median, low=low, high=high)


def panel_sentence(claim: PanelAgreement, words: Words) -> str:
    """Say how far three judges or more agree, by Krippendorff's alpha, and on how many windows.

    Such as "AB, CD and EF: Krippendorff's alpha as to S 0.35, without an interval, from 60 windows that two
    or more of them judged."
    """
    return words.counted(
        "judges_alpha_sure" if claim.n_unsure else "judges_alpha",
        claim.n_windows,
        judges=words.listed([words.judge(name) for name in claim.who]),
        unsure=words.counted("alpha_unsure", claim.n_unsure),
        alpha=words.number(claim.known_number()),
        positive=claim.positive,
    )


def decision_sentence(claim: DecidedSpan, words: Words) -> str:
    """Say who gave which level to a span, and whether they saw the model's score.

    Such as "Marked S (Sure) by AB, blind of the model's score".
    """
    key = "decided_agreed" if claim.has(AGREED) else "decided"
    how = words["decided_not_blind"]
    if claim.has(BLIND):
        how = words["decided_blind"]
    elif claim.has(IN_SIGHT):
        how = words["decided_in_sight"]
    who = words.listed([words.judge(name) for name in claim.who])
    return words.say(key, title=claim.what, who=who, how=how)


def timeline_sentence(claim: TimelineAgreement, words: Words) -> str:
    """Say how far a model's timelines agree with an annotator, over how many films and how many minutes.

    Such as "linear and AB: kappa 0.31 [0.12, 0.48] (95%), mean of 12 films, in the 900 minutes that linear
    can judge of 1100 minutes".
    """
    judged, whole = words.durations(claim.time.seconds or 0.0, claim.whole_s)
    return words.say(
        "agrees_answered" if claim.has(ANSWERED_TIME) else "agrees",
        model=claim.who[0],
        annotator=claim.what,
        kappa=_kappa_of_timelines(claim, words),
        of=words.counted("mean_of_films", claim.n_films),
        judged=judged,
        whole=whole,
    )


def _kappa_of_timelines(claim: TimelineAgreement, words: Words) -> str:
    """Write a mean kappa over films with its interval, such as "0.31 [0.12, 0.48] (95%)", and its doubts."""
    kappa = words["undefined_timelines"] if claim.number is None else words.number(claim.number)
    if claim.interval is not None:
        level = words.share(claim.interval.level)
        kappa = f"{kappa} [{words.numbers(claim.interval)}] ({level})"
    key_of_doubt = {**NO_INTERVAL_OF_FILMS, **PAIR_DOUBTS}
    doubts = [words[key] for condition, key in key_of_doubt.items() if claim.has(condition)]
    if doubts:
        kappa = f"{kappa} ({words['semicolon'].join(doubts)})"
    return kappa


# --- of several films
# ---------------------------------------------------------------------------
def groups_sentence(claims: Sequence[FilmClaim], words: Words) -> str:
    """Write the shares of groups by their judges, the trend, and how far judges agree.

    Such as "AB would mark as S, of a film without black and credits, on average over films (95% intervals):
    17% [9%, 28%] in the 1990s; 10 years later +4.0 points." If the model expects the same share of all films,
    that is said last.
    """
    shares = [claim for claim in claims if isinstance(claim, GroupShare) and claim.number is not None]
    changes = [claim for claim in claims if isinstance(claim, GroupChange) and claim.number is not None]
    trends = [change for change in changes if change.is_by_decade]
    agreement = [claim for claim in claims if isinstance(claim, PairKappa | PanelAgreement)]
    text = _group_shares_sentence(shares, trends, words) if shares else words["no_group"]
    parts = [text, *judges_sentences(agreement, words)]
    parts += [same_share_sentence(claim, words) for claim in claims if isinstance(claim, SameShare)]
    return " ".join(parts)


def _group_shares_sentence(shares: Sequence[GroupShare], trends: Sequence[GroupChange], words: Words) -> str:
    """Write the shares of groups of films, and the trends, in a sentence.

    Such as "AB would mark as S, of a film without black and credits, on average over films (95% intervals):
    1970s 12% [6%, 20%]; 1980s 18% [11%, 27%]". If the groups have different judges, each share names its own.
    """
    first = shares[0]  # what is positive, and the level of intervals, are the same for all groups
    have_same_judges = all(share.who == first.who for share in shares)
    film_key = "a_film_read" if _any_has(shares, PARTLY_READ) else "a_film"
    level = words.share(first.interval.level) if first.interval else ""

    rates = []
    for share in shares:
        rate = group_phrase(share, words)
        if not have_same_judges:
            judges = words.listed([words.judge(name) for name in share.who])
            rate = f"{judges}{words['colon']}{rate}"
        rates.append(rate)
    rates += [later_phrase(trend, words) for trend in trends]

    return words.say(
        _would_mark_key(shares, have_same_judges=have_same_judges),
        who=_judges_of_groups(shares, have_same_judges=have_same_judges, words=words),
        marked=as_positive(first, first.what, words),
        film=words[film_key],
        unsure=_windows_left_out_of_groups(shares, words),
        mean=_mean_of_groups(shares, words),
        level=level,
        rates=words["semicolon"].join(rates),
    )


def _windows_left_out_of_groups(shares: Sequence[GroupShare], words: Words) -> str:
    """Say that windows of which judges were not sure are left out of groups' shares; empty if none is."""
    if not _any_has(shares, NOT_SURE):
        return ""
    return words["unsure_left_out_panel" if _any_has_panel(shares) else "unsure_left_out"]


def _mean_of_groups(shares: Sequence[GroupShare], words: Words) -> str:
    """Say that groups' shares are means over films and, if a group has several judges, over its judges."""
    if not _any_has_panel(shares):
        return words["mean_alone"]
    return words["mean_of_sure_judges" if _any_has(shares, NOT_SURE) else "mean_of_judges"]


def _any_has_panel(shares: Sequence[GroupShare]) -> bool:
    """Whether any of the groups was judged by several people."""
    return any(len(share.who) > 1 for share in shares)


def _judges_of_groups(shares: Sequence[GroupShare], *, have_same_judges: bool, words: Words) -> str:
    """Write who judged the groups: their names, or "Judges" if each group's judges are named with its share.

    Names are written if the judges of all groups are the same, or if films of one group have different
    judges.
    """
    if have_same_judges:
        return words.listed([words.judge(name) for name in shares[0].who])
    if _any_has(shares, OTHER_JUDGES):
        all_names = {words.judge(name) for share in shares for name in share.who}
        return words.listed(sorted(all_names))
    return words["judges"]


def _would_mark_key(shares: Sequence[GroupShare], *, have_same_judges: bool) -> str:
    """Choose the text that begins a sentence on shares of groups, by who judged their films.

    - `would_mark`: one person judged all films, "AB would mark";
    - `would_mark_panel`: several did, and "would mark" is in the plural in some languages;
    - `would_mark_mixed`: within a group, films were judged by different people.
    """
    if _any_has(shares, OTHER_JUDGES):
        return "would_mark_mixed"
    judges_of_first_group = shares[0].who
    is_of_one_judge = have_same_judges and len(judges_of_first_group) == 1
    return "would_mark" if is_of_one_judge else "would_mark_panel"


def _any_has(claims: Sequence[FilmClaim], condition: str) -> bool:
    """Whether a condition applies to any of the claims."""
    return any(claim.has(condition) for claim in claims)


def group_value(claim: GroupShare, words: Words) -> str:
    """Write the share of a group with its interval, such as "17% [9%–28%]"; a dash where it has none."""
    share = share_value(claim, words)
    return f"{share} [{share_ends(claim, words)}]" if claim.interval is not None else share


def group_expected(claim: GroupShare, words: Words) -> str:
    """Write the share that the model alone expects of a group, and of how many films if not of all.

    Such as "20% (8 of 10 films)"; a dash if the model expects none.
    """
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
    """Say where the share of one film comes from: judged windows, the model alone, or labels in its place.

    If there is no share, it says why.
    """
    if isinstance(claim, JudgedShare):
        return _judged_film_note(claim, words)
    if claim.number is None:
        return no_share_phrase(claim, words)
    if claim.has(OF_LABELS):
        return words.say("labels_only", who=words.judge(claim.who[0]))
    return words["model_only"]


def _judged_film_note(claim: JudgedShare, words: Words) -> str:
    """Say how many windows a share comes from, who judged them, and what must be known of the share."""
    clauses = [
        *_windows_of_share(claim, words),
        *_too_few_together(claim, words),
        *_corrections(claim, words),
        *panel_doubts(claim, words),
    ]
    return words["semicolon"].join(clauses)


def _windows_of_share(claim: JudgedShare, words: Words) -> list[str]:
    """Say how many windows were judged by whom, and how many surely.

    Such as "40 windows judged by AB in the order of the draw, 12 of them surely". The share is of the windows
    that judges were sure of. If these are little of the film's time, a second clause says of which.
    """
    who = words.listed([words.judge(name) for name in claim.who])
    n_sure = claim.n
    if not claim.has(NOT_SURE):
        return [words.counted("windows_judged", n_sure, who=who)]
    n_judged = n_sure + claim.n_unsure
    clauses = [words.counted("windows_judged_surely", n_judged, sure=n_sure, who=who)]
    if _is_much_unsure(claim):
        clauses.append(words.say("share_of_little", time=_little_time_phrase(claim, words)))
    return clauses


def _too_few_together(claim: JudgedShare, words: Words) -> list[str]:
    """Say why the share is not of all who judged the film: all together judged too few windows for a share.

    Such as "AB, CD and EF together judged too few surely for a share before the first gap of the draw; 12
    windows after it do not count in a share of all of them". The names are of all judges, those of the share
    and those who are left out of it. Empty if nobody is left out.
    """
    if not claim.left_out:
        return []
    all_judges = words.listed([words.judge(name) for name in (*claim.who, *claim.left_out)])
    key = "judged_together_concept" if claim.has(OF_CONCEPT) else "judged_together"
    sentence = words.say(key, who=all_judges)
    # A share takes windows in the order of the draw up to the first that was not judged, the gap.
    if claim.after_gap:
        sentence = words.counted("judged_together_gap", claim.after_gap, too_few=sentence)
    return [sentence]


def planted_sentence(model: ModelRecord, words: Words) -> str:
    """Say that a program gave all or some of the labels that a model was trained on; empty if none."""
    if positive_of(model).is_planted:
        return words["about_1_planted"]
    people = people_besides_program(model)
    return words.say("about_1_partly_planted", names=words.listed(people)) if people else ""


def no_share_phrase(claim: ExpectedShare, words: Words) -> str:
    """Say in a clause that a film has no share, and why if that is known."""
    has_reason = any(condition in NO_SHARE for condition in claim.conditions)
    is_reason_known = claim.number is None and has_reason
    if not is_reason_known:
        return words["withheld"]
    return _as_clause(no_share_sentence(claim, words))


def _as_clause(sentence: str) -> str:
    """Write a sentence as a clause of another one: without its capital and full stop; empty if it is."""
    text = sentence.removesuffix(".")
    return f"{text[:1].lower()}{text[1:]}"


def few_windows_note(claim: ExpectedShare, counts: WindowCounts, words: Words) -> str:
    """Say what share the model expects of a film, and that too few of its windows were judged for a rate.

    Windows count in the order of their draw, up to the first that was not judged. Those judged after this gap
    are written too, so that somebody who judged them does not miss them.
    """
    windows_before_gap = counted_phrase(counts.judged, counts.sure, words, is_of_panel=False)
    all_windows = _with_windows_after_gap(windows_before_gap, counts.after_gap, words, is_of_panel=False)
    return words.say("model_only_few", alone=film_share_note(claim, words), counted=all_windows)


def film_share_sentence(title: str, year: str, claim: JudgedShare | ExpectedShare, words: Words) -> str:
    """Write the share of one film among others beside its title, with its interval, and whose share it is.

    Such as "Alien (1979): 17% [9%–28%], 60 windows judged by AB in the order of the draw".
    """
    share = film_share_value(claim, words)
    note = film_share_note(claim, words)
    return words.say("film_share", title=title, year=year, share=share, whose=note)


def later_phrase(claim: GroupChange, words: Words) -> str:
    """Write the trend, such as "10 years later +4.0 points [−1.0, +9.0]", and the note on it if any."""
    change = claim.known_number()
    if claim.note:
        return words.points_text("later_noted", change, claim.interval, note=words.translated(claim.note))
    return words.points_text("later", change, claim.interval)


def group_phrase(claim: GroupShare, words: Words) -> str:
    """Write the share of a group with its interval, such as "17% [9%, 28%] in the 1990s".

    A note says on how few films it rests, if they are few.
    """
    share = words.share(claim.known_number())
    if claim.interval is not None:
        share = f"{share} [{words.shares(claim.interval)}]"
    group = words.translated(claim.group)
    if claim.note:  # on how few films
        return words.say("rate_of_noted", share=share, group=group, note=words.translated(claim.note))
    return words.say("rate_of", share=share, group=group)


def group_sentence(claim: GroupShare, words: Words) -> str:
    """Say what share of a group's time its judges would mark, or why there is none."""
    if claim.number is None:
        return f"{words.translated(claim.group)}{words['colon']}{words.translated(claim.reason)}"
    return groups_sentence([claim], words)


def change_sentence(claim: GroupChange, words: Words) -> str:
    """Say by how many points two groups differ, or a share changes, or why that is not known.

    Such as "the 1990s minus the 1980s: +4.0 [−1.0, +9.0] percentage points".
    """
    change = words.translated(claim.change)
    if claim.number is None:
        return f"{change}{words['colon']}{words.translated(claim.reason)}"
    points = words.points_text("points_of", claim.number, claim.interval)
    note = f"{words['semicolon']}{words.translated(claim.note)}" if claim.note else ""
    return f"{change}{words['colon']}{points}{note}"


def learnt_sentence(claim: LearntChange, words: Words) -> str:
    """Say how the AUC changed by learning from judgements: better or worse if its interval excludes 0.

    Such as "Films of the corpus: no change can be told (a model trained with the judgements less one trained
    without, by film: AUC +0.010 [−0.020, +0.040], 95% if both are trained anew, 12 films)". Without an
    interval, the brackets say why there is none, and not "95% if both are trained anew".

    Examples
    --------
    An interval that ends at 0 does not exclude it.

    >>> from obygaze_film.claims.kinds import Bounds
    >>> for low, high in [(0.0, 0.02), (0.01, 0.03), (-0.02, 0.0), (-0.03, -0.01)]:
    ...     interval = Bounds(low, high, level=0.95)
    ...     mean = (low + high) / 2
    ...     facts = {"number": mean, "interval": interval, "n_films": 12, "is_of_judged": False}
    ...     claim = LearntChange(who=("m",), what="AUC", time="content", **facts)
    ...     print(learnt_sentence(claim, Words("en")))
    Films of the corpus: no change can be told (...: AUC +0.010 [+0.000, +0.020], ..., 12 films)
    Films of the corpus: better (...: AUC +0.020 [+0.010, +0.030], ..., 12 films)
    Films of the corpus: no change can be told (...: AUC −0.010 [−0.020, +0.000], ..., 12 films)
    Films of the corpus: worse (...: AUC −0.020 [−0.030, −0.010], ..., 12 films)
    """
    which_key = "learn_judged" if claim.is_of_judged else "learn_corpus"
    difference = words["undefined"]
    if claim.number is not None:
        difference = words.difference(claim.number, claim.interval)

    # The verdict, and the facts in brackets that it rests on
    verdict_key = "learn_same"
    facts = []
    if claim.interval is not None:
        facts.append(words["learn_covers"])
        if claim.interval.low > 0:
            verdict_key = "learn_better"
        elif claim.interval.high < 0:
            verdict_key = "learn_worse"
    facts.append(words.counted("count_films", claim.n_films))
    for reason_for_no_interval, key in NO_INTERVAL_OF_FILMS.items():
        if claim.has(reason_for_no_interval):
            facts.append(words[key])
    return words.say(
        "learn_change",
        which=words[which_key],
        verdict=words[verdict_key],
        difference=difference,
        facts=", ".join(facts),
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
