"""Print what is claimed of a scored film on a terminal, line by line."""

from typing import TYPE_CHECKING

from obygaze_features.manifest import counted
from obygaze_film.claims import Words, phrases
from obygaze_film.claims.of_film import (
    expected_share,
    film_title,
    flagged_times,
    judged_time,
    marked_passages,
    model_evidence,
    other_windows,
    reaching_passages,
    same_probability,
)

if TYPE_CHECKING:
    from obygaze_film.schema import ModelRecord
    from obygaze_film.timeline import Timeline


def first_lines(film: "Timeline", words: Words) -> list[str]:
    """Write a film's title, and which passages its first model marks."""
    return [phrases.title_sentence(film_title(film), words), *_marked_lines(film, words)]


def _marked_lines(film: "Timeline", words: Words) -> list[str]:
    """Write which passages a film's first model marks, as a list of one line; empty without a prediction."""
    model = film.model()
    marked = marked_passages(film, model, film.segments(model.key))
    return [] if marked is None else [phrases.marked_sentence(marked, words)]


def lines_of_film(film: "Timeline", words: Words) -> list[str]:
    """Write a film's title, the evidence of its models, what they mark and expect, and what was scored."""
    # The title with the gravest warnings of each model.
    titles = [film_title(film, model.key) for model in film.record.models]
    lines = [phrases.titles_sentence(titles, words)]
    for model in film.record.models:
        evidence = phrases.evidence_sentence(model_evidence(model), words)
        lines.append(f"  {model.key}: {evidence}")
    lines += [f"  {line}" for line in _marked_lines(film, words)]
    lines.append(f"  {_counts_of_rows(film, words)}")
    for model in film.record.models:
        lines += _lines_of_model(film, model, words)
    return lines


def _counts_of_rows(film: "Timeline", words: Words) -> str:
    """Write how many windows were scored, and how many rows the timeline has.

    Rows are shots or, if shots are not known, windows or the steps between windows that overlap. Examples are
    "60 windows of 4 s (2 without features), 31 shots in 33 rows" and "60 windows of 4 s, 59 rows (steps)".
    """
    record = film.record
    windows = record.windows
    rows = record.rows
    text = f"{counted(windows.n, 'window')} of {words.seconds(windows.window_s)} s"
    if windows.n_missing:
        text += f" ({windows.n_missing} without features)"

    if rows.kind == "shots" and record.shots is not None:
        return f"{text}, {counted(record.shots.n, 'shot')} in {counted(rows.n, 'row')}"
    return f"{text}, {counted(rows.n, 'row')} ({rows.kind})"


def _lines_of_model(film: "Timeline", model: "ModelRecord", words: Words) -> list[str]:
    """Write what one model says of a film: one line, and more lines below it, which are indented.

    The first line has the share of the film's time that the model expects to be positive, and how many
    passages it marks. The others say, if it is so, that all windows have the same probability, or that they
    are longer or shorter than the clips of the training; then how much time has a probability, and what was
    flagged.
    """
    share = phrases.expected_sentence(expected_share(model, film.rows(model.key)), words)
    first_line = f"  {model.key} ({model.task}): {share.removesuffix('.')}"
    passages = reaching_passages(film, model, film.segments(model.key))
    if passages is not None:  # in the same sentence
        first_line += f"; {phrases.marked_count(passages, words)}"
    lines = [first_line]

    # Each of these claims is None if there is nothing to say.
    same = same_probability(film, model)
    if same is not None:
        lines.append(f"    {phrases.same_sentence(same, words)}")
    windows = other_windows(model, film.record.windows)
    if windows is not None:
        lines.append(f"    {phrases.windows_sentence(windows, words)}")

    judged = judged_time(model, film.time(model.key), film.shots)
    lines.append(f"    {phrases.judged_sentence(judged, words)}")
    lines += [f"    {phrases.flagged_sentence(claim, words)}" for claim in flagged_times(model, judged)]
    return lines
