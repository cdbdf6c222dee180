"""`obygaze film next`, `rate`, `compare`, `learn`: choose windows to judge, and use the judgements."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

import obygaze_film
from obygaze_features.commands import complete_codebook
from obygaze_features.io import refuse_existing, write_whole
from obygaze_features.options import PROBLEMS_FOUND, Answer, Output, declared
from obygaze_features.templates import filled
from obygaze_models.commands import finish, read_inputs, under_policy


@declared(__package__, "film next")
def next_(
    folders: tuple[Path, ...], judged: tuple[Path, ...], codebook: Path | None, output: Output, **draw: Any
) -> Answer:
    """Choose the windows of scored films that people should judge next.

    A window is as long as the clips that the model was trained on. Two thirds are the windows about which the
    model is least certain, spread over films and never flagged ones; a third is drawn at random. --blind
    draws all at random, in proportion to their content (without black and credits), and shows no score: from
    such judgements `obygaze film rate` estimates each film's rate. The file is a manifest: fill in the
    columns level, concepts and annotator, with --blind in the order of the list, so that you may stop at any
    row. The same films give the same windows; a larger --n adds to them; those of --judged are left out.

    \b
    Examples:
      obygaze film next scored --n 20 --out to-judge.csv
      obygaze film next scored --blind --n 60 --out blind.csv
      obygaze film next scored --n 20 --judged judged.csv --out more.csv
    """
    from obygaze_features.manifest import Manifest, counted, name_hint, read_manifest, write_manifest
    from obygaze_film.judged_rate import LEAST
    from obygaze_film.windows_to_judge import choose_next
    from obygaze_film.workspace.decisions import codebook_of

    output.refuse_existing()
    out = output.path
    films = obygaze_film.read_films(folders)
    ids = [film.movie for film in films]
    done = [clip for path in judged for clip in read_manifest(path, spreadsheet_safe=True).spelled_as(ids)]
    others = dict.fromkeys(
        f"{clip.movie}{name_hint(clip.movie, ids)}" for clip in done if clip.movie not in ids
    )
    if others:
        click.echo(f"judged, and not among these films: {', '.join(others)}", err=True)
    clips = choose_next(films, judged=done, **draw)
    book = codebook_of(films[0].model(draw["key"]).codebook, codebook)
    write_manifest(Manifest(tuple(clips), out.absolute().parent, book), out, spreadsheet_safe=True)
    n_films = len({clip.movie for clip in clips})
    random = sum(clip.extras["draw"] == "random" for clip in clips)
    if draw["blind"]:
        then = f"obygaze film rate, which needs {LEAST} of a film"
        click.echo(f"Judge them in this order, without looking at the film's page, then: {then}", err=True)
    return Answer(
        None, f"{out}: {len(clips)} windows of {counted(n_films, 'film')}, {random} drawn at random"
    )


@declared(__package__, "film rate")
def rate(folder: Path, judgements: Path, key: str | None, labels: Path | None) -> Answer:
    """Estimate a film's rate from JUDGEMENTS of windows that `film next --blind` drew.

    The model's probabilities make the interval narrower, and need not be right (difference estimate with the
    finite-population correction, 95 %). Judgements made with the score in sight do not count. If two people
    judged the same windows, their agreement is printed. JUDGEMENTS may be saved by a spreadsheet: commas,
    semicolons or tabs, and levels in any case. The result is printed and kept in FOLDER/rate.json, where the
    film's page finds it; with --labels, which narrow the interval in the model's place, it is printed alone.
    Films of FOLDER that have no rate yet are named.

    \b
    Exit codes: 0 done, 1 error, 2 usage, 3 done, but a film has no rate.

    \b
    Examples:
      obygaze film next scored --blind --n 60 --out blind.csv
      obygaze film rate scored blind.csv
      obygaze film rate scored blind.csv --labels answers.csv
    """
    import msgspec

    from obygaze_features.manifest import read_manifest
    from obygaze_film.errors import FilmError
    from obygaze_film.judged_rate import correct_rate, write_rates
    from obygaze_film.page.phrases import Words, agreement
    from obygaze_film.timeline import found_films

    films = found_films([folder])
    ids = [film.movie for film in films.values()]
    truth = read_manifest(judgements, spreadsheet_safe=True).spelled_as(ids)
    cheap = None if labels is None else read_manifest(labels)
    every, shown, told, without = [], [], list[str](), list[str]()
    for scored_folder, timeline in films.items():
        keys = [key] if key else [model.key for model in timeline.record.models if model.decides]
        # Those of the other films here count there, and are not left out.
        others = {*ids} - {timeline.movie}
        own = truth.with_clips(clip for clip in truth if clip.movie not in others)
        try:
            estimated = [correct_rate(timeline, own, model_key, labels=cheap) for model_key in keys]
        except FilmError as error:
            without.append(str(error))
            continue
        rates = [corrected for corrected, _ in estimated]
        if labels is None:
            write_rates(scored_folder, rates)
        every += [{"movie": timeline.movie, **msgspec.to_builtins(corrected)} for corrected in rates]
        shown.append((timeline.heading, rates))
        told += [f"{timeline.movie}: {notice}" for _, notices in estimated[-1:] for notice in notices]
    if not every:
        raise FilmError("; ".join(without))
    values, filters = {"films": shown, "english": Words("en")}, {"agreement": agreement}
    text = filled(__package__, "rate.txt.jinja", values, filters=filters).rstrip("\n")
    return Answer({"rates": every}, text, [*told, *without], PROBLEMS_FOUND * bool(without))


@declared(__package__, "film compare", codebook={"shell_complete": complete_codebook})
def compare(
    folders: tuple[Path, ...],
    films: Path | None,
    judged: tuple[Path, ...],
    labels: Path | None,
    codebook: str | None,
    output: Output,
    **how: Any,
) -> Answer:
    """Estimate mean rates of groups of films, their differences and a trend.

    Blind judgements of windows of some films (judgements.csv in their folders, or --judged) correct the model
    in all films. Draw the films to judge at random. The 95 % intervals contain both draws, of films and of
    windows. A group needs 5 judged films, a trend 10; a group with fewer gets no rate, and the films to judge
    next are drawn and named. Have the same people judge films of all groups: a difference accounts for who
    judged (column annotator), and is refused where each judged a group. Films that the model was trained on
    are left out. With --labels an annotator's labels, such as a machine's, stand in the model's place. --html
    also shows each film's timeline, by year.

    \b
    Exit codes: 0 done, 1 error, 2 usage, 3 done, but a group, a difference
    or the trend has no estimate.

    \b
    Examples:
      obygaze film compare scored --by decade --html decades.html
      obygaze film compare scored --films films.csv --by genre --trend year \\
          --out genres
    """
    from obygaze_features.manifest import find_codebook, import_spans, read_manifest
    from obygaze_film.film_groups import comparison_report, read_facts
    from obygaze_film.page.figures import years_figure
    from obygaze_film.page.phrases import Words
    from obygaze_film.page.side_by_side import comparison_page
    from obygaze_film.scored_files import JUDGEMENTS
    from obygaze_film.timeline import found_films
    from obygaze_film.workspace.decisions import judged_files
    from obygaze_models.report import check_folder

    if output.out is not None:
        check_folder(output.out, force=output.force)
    refuse_existing(output.html, force=output.force)
    by_folder = found_films(folders)
    timelines, facts = [*by_folder.values()], None
    book = find_codebook(codebook) if codebook else None
    files, notes = judged_files(by_folder, book, JUDGEMENTS)
    imported = import_spans([*files, *judged], Path(), "judgements", codebook=book)
    cheap = None if labels is None else read_manifest(labels)
    notes += imported.notices
    if films is not None:
        facts, unmatched = read_facts(films, timelines)
        notes += unmatched
    compared = obygaze_film.compare_films(timelines, imported.manifest, facts, labels=cheap, **how)
    compared = replace(compared, notes=(*notes, *compared.notes))
    answer = finish(comparison_report(compared), replace(output, html=None))
    if output.out is not None and (figure := years_figure(compared, Words("en"), alone=True)):
        write_whole(output.out / "years.svg", figure)
    if output.html is not None:
        output.html.parent.mkdir(parents=True, exist_ok=True)
        write_whole(output.html, comparison_page(compared))
        answer = replace(answer, remarks=[*answer.remarks, f"page kept in {output.html}"])
    reasons = [reason for table in (compared.groups, compared.changes) for reason in table.get("reason", ())]
    return replace(answer, code=PROBLEMS_FOUND * (any(reasons) or not compared.films))


@declared(__package__, "film learn")
def learn(
    folders: tuple[Path, ...],
    manifest: Path,
    store: Path,
    output: Output,
    **how: Any,
) -> Answer:
    """Train the model of scored films anew, on its corpus and on what people judged in the films.

    Judgements (judgements.csv and passages.csv in the FOLDERs, and --judged) become clips with the features
    of the windows in them. The model is evaluated strictly before and after: a film is left out whole
    with its judgements, and those made in sight of the score are trained on and never tested. --out gets the
    model, manifest.csv (the corpus and the judged clips) and the runs `before` and `after`.

    \b
    Examples:
      obygaze film learn scored --manifest films.csv --store stores/films \\
          --out learnt
      obygaze film learn scored/* --manifest films.csv --store stores/films \\
          --judged blind.csv --save pcbm_lr --out learnt
    """
    from obygaze_film.learning import learn_films
    from obygaze_film.timeline import found_films

    refuse_existing(output.html, force=output.force)
    films, (clips, stores) = found_films(folders), read_inputs(manifest, [store])
    labelled, notes = under_policy(clips, how["policy"])
    how |= {"notes": notes, "force": output.force}
    report, name = learn_films(films, (labelled, stores), output.path, progress=True, **how)
    kept = f"model kept in {output.path / name}; the films as it scores them: {output.path / 'scored'}"
    return replace(finish(report, replace(output, out=None)), remarks=[kept])
