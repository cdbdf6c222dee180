"""`obygaze film next`, `rate`, `compare`, `learn`: choose windows to judge, and use the judgements."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import click

import obygaze_film
from obygaze_features.commands import complete_codebook
from obygaze_features.io import refuse_existing, write_whole
from obygaze_features.options import PROBLEMS_FOUND, Answer, Output
from obygaze_features.signatures import Force, Json, argument, command, option
from obygaze_features.untrusted import STANDARD
from obygaze_film.commands.film_options import Folders, Html, Judged, Labels, ModelKey
from obygaze_models.commands import finish, read_inputs, under_policy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from obygaze_features.manifest import Clip, Manifest
    from obygaze_film.film_groups import FilmComparison
    from obygaze_film.judged_rate import FilmRates
    from obygaze_film.timeline import Timeline


@command("next")
def next_(
    folders: Folders,
    *,
    n: Annotated[
        int, option("Number of windows in all; with --blind, of each film.", type=click.IntRange(1))
    ] = 20,
    blind: Annotated[
        bool, option("Draw all windows at random and write no scores, for `film rate`.")
    ] = False,
    judged: Annotated[
        tuple[Path, ...], option("Table of earlier judgements, whose windows are left out; repeatable.")
    ] = (),
    key: ModelKey = None,
    codebook: Annotated[
        Path | None,
        option("Codebook file to judge by.  [default: the models' codebook, if it is built in]"),
    ] = None,
    out: Annotated[Path, option("Manifest to write, for people to fill in.")],
    force: Force = False,
) -> None:
    """Choose the windows of scored films that people should judge next.

    A window is as long as the clips that the model was trained on. The last window of a film may be longer:
    the rest of the film belongs to it.

    Without --blind, at least a third of the windows (rounded down) are drawn at random. The others are those
    about which the model is least certain, from all films in turn; no two of these are neighbours. A window
    is chosen only if more than half of it has a probability.

    With --blind, all windows are drawn at random, and no score is written. The chance that a window is drawn
    next is proportional to its seconds of content: what could be read and is neither black nor credits.
    `obygaze film rate` estimates each film's rate from such judgements.

    Fill in the columns level, concepts and annotator of the manifest. With --blind, go through the rows in
    their order; then you may stop at any row. Leave these columns as they are:

    \b
      place       the window's place in the order of the draw
      law         name of the method by which windows were drawn
      seed        random seed of the draw
      content_s   the window's seconds of content
      definition  digest of the codebook's definitions

    Windows of which more than half could not be read are never chosen; their number is printed. The same
    films give the same windows, and a larger --n adds windows to them.

    \b
    Examples:
      obygaze film next scored --n 20 --out to-judge.csv
      obygaze film next scored --blind --n 60 --out blind.csv
      obygaze film next scored --n 20 --judged judged.csv --out more.csv
    """
    from obygaze_features.manifest import DEFINITION, Manifest, write_manifest
    from obygaze_film.judged_windows import MIN_SURE_WINDOWS
    from obygaze_film.windows_to_judge import choose_next, content_notices, unknown_notices, unread_notices
    from obygaze_film.workspace.decisions import codebook_of

    refuse_existing(out, force=force)

    # --- choose the windows
    films = obygaze_film.read_films(folders)
    earlier = _read_judged(judged, [film.movie for film in films])
    for notice in unread_notices(films):
        click.echo(notice, err=True)
    clips = choose_next(films, n, key=key, blind=blind, judged=earlier)
    notices = content_notices(films, earlier) if blind else unknown_notices(films, earlier, key=key)
    for notice in notices:
        click.echo(notice, err=True)

    # --- write them as a manifest, which says by which definitions they are to be judged
    book = codebook_of(films[0].model(key).codebook, codebook)
    definition = book.definition()
    clips = [replace(clip, extras={**clip.extras, DEFINITION: definition}) for clip in clips]
    write_manifest(Manifest(tuple(clips), out.absolute().parent, book), out, spreadsheet_safe=True)
    if blind:
        click.echo(
            "Judge them in this order, without looking at the film's page, then: obygaze film rate, "
            f"which needs {MIN_SURE_WINDOWS} of a film of which their judge is sure, or all of it",
            err=True,
        )
    manifest_is_on_stdout = out == STANDARD
    click.echo(f"{out}: {_summary_of_windows(clips)}", err=manifest_is_on_stdout)


def _summary_of_windows(clips: "Sequence[Clip]") -> str:
    """Write how many windows of how many films were chosen, and how many of them at random."""
    from obygaze_features.manifest import counted

    n_films = len({clip.movie for clip in clips})
    n_random = sum(clip.extras["draw"] == "random" for clip in clips)
    return f"{counted(len(clips), 'window')} of {counted(n_films, 'film')}, {n_random} drawn at random"


def _read_judged(files: "Sequence[Path]", movies: "Sequence[str]") -> "list[Clip]":
    """Read earlier judgements from tables; print which judged films are not among `movies`, with a hint.

    `movies` are the films of which windows are chosen. Judgements of other films are returned too.
    """
    from obygaze_features.manifest import name_hint, read_manifest

    judged: list[Clip] = []
    for path in files:
        manifest = read_manifest(path, spreadsheet_safe=True)
        judged += manifest.spelled_as(movies)  # the table may write a movie in another case
    other_movies = dict.fromkeys(clip.movie for clip in judged if clip.movie not in movies)
    if other_movies:
        hinted = [f"{movie}{name_hint(movie, movies)}" for movie in other_movies]
        click.echo(f"judged, and not among these films: {', '.join(hinted)}", err=True)
    return judged


@command()
def rate(
    folder: Annotated[Path, argument()],
    judgements: Annotated[Path, argument()],
    *,
    labels: Labels = None,
) -> Answer:
    """Estimate a film's rate from blind judgements: the share of its time that a judge would mark.

    A judge marks a window by giving it a level or a concept that the film's model was trained to find, such
    as level S. JUDGEMENTS is the table that `film next --blind` wrote, filled in; a spreadsheet may have
    saved it. FOLDER holds the scored film, or several.

    The model's probabilities help the estimate: the better they are, the narrower its 95 % confidence
    interval. If they are wrong, the interval is still valid.

    Only blind judgements count, not those made in sight of the model's score. The windows of a judge count
    in the order of the draw, up to the first one that this judge left out.

    \b
    A rate is given
    - for each judge who was sure of 10 windows or more
    - for all judges together, with their agreement, if there are 10 windows
      that all of them judged and were sure of
    - of fewer windows, if no window is left to judge
    - for each definition, if the codebook's definitions changed meanwhile

    The result is printed, and written to rate.json in the film's folder, for `film report`. With --labels it
    is only printed. Films without a rate are listed.

    \b
    Exit codes: 0 done, 1 error or no film has a rate, 2 usage,
    3 done, but some film or model has no rate.

    \b
    Examples:
      obygaze film next scored --blind --n 60 --out blind.csv
      obygaze film rate scored blind.csv
      obygaze film rate scored blind.csv --labels answers.csv
    """
    from obygaze_features.manifest import read_manifest
    from obygaze_film.errors import FilmError
    from obygaze_film.judged_rate import write_rates
    from obygaze_film.timeline import found_films
    from obygaze_film.workspace.judged_tables import meanings_in, with_common_definitions

    # --- read the films and the judgements
    films = found_films([folder])
    movies = {film.movie for film in films.values()}
    judged = read_manifest(judgements, spreadsheet_safe=True).spelled_as(sorted(movies))
    # Judgements under different definitions of the codebook are counted apart, unless people declared in a
    # film's ledger that these mean the same: such judgements get one definition.
    meanings = meanings_in([*films], [judged.codebook])
    judged = with_common_definitions(judged, meanings)
    labelled = None if labels is None else read_manifest(labels)

    # --- estimate and write the rates, film by film
    parts = _RateParts()
    for scored_folder, timeline in films.items():
        # Without the judgements of the other films here: a note would count them as left out.
        other_movies = movies - {timeline.movie}
        judged_here = judged.with_clips(clip for clip in judged if clip.movie not in other_movies)
        estimates = _estimates_of_models(timeline, judged_here, judged, labelled, meanings.names())
        parts.reasons_without_rate += estimates.reasons_without_rate
        if not estimates.rates_of_model:
            continue
        if labels is None:  # rates by labels in the model's place are not kept for the film's page
            write_rates(scored_folder, [*estimates.rates_of_model.values()])
        parts.add(timeline, estimates.rates_of_model, has_labels=labels is not None)
    if not parts.documents:
        raise FilmError("; ".join(parts.reasons_without_rate))
    return Answer(
        {"rates": parts.documents, "claims": parts.claims},
        "\n".join(parts.lines),
        [*parts.notes, *parts.reasons_without_rate],
        code=PROBLEMS_FOUND if parts.reasons_without_rate else 0,
    )


@dataclass
class _RateParts:
    """The parts of the answer of `film rate`, film after film.

    Attributes
    ----------
    documents, claims : list of dict
        For JSON output.
    lines, notes : list of str
    reasons_without_rate : list of str
        Of each film and model without a rate.
    """

    documents: list[dict[str, Any]] = field(default_factory=list)
    claims: list[dict[str, Any]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    reasons_without_rate: list[str] = field(default_factory=list)

    def add(self, film: "Timeline", rates_of_model: "Mapping[str, FilmRates]", *, has_labels: bool) -> None:
        """Add the rates of a film to the parts of the answer (all lists but `reasons_without_rate`).

        `rates_of_model` has the film's rates by the key of the model. With `has_labels`, labels stood in
        place of the model's probabilities.
        """
        self.documents += _rate_documents(film, rates_of_model)
        self.claims += _claim_documents(film, rates_of_model)
        self.lines += _lines_of_rates(film, rates_of_model, has_labels=has_labels)
        self.notes += _notices_of_models(film.movie, rates_of_model)


class ModelEstimates(NamedTuple):
    """A film's rates by the key of each model that has some, and for each other model why it has none."""

    rates_of_model: "dict[str, FilmRates]"
    reasons_without_rate: list[str]


def _deciding_models(film: "Timeline") -> list[str]:
    """Return the keys of the models of a film that decide, each of which may have a rate."""
    return [model.key for model in film.record.models if model.decides]


def _estimates_of_models(
    film: "Timeline",
    judged: "Manifest",
    judged_in_all_films: "Manifest",
    labelled: "Manifest | None",
    names_of_definitions: "Mapping[str, str]",
) -> ModelEstimates:
    """Estimate a film's rate by each of its models.

    One model may have a rate and another none. For example, clips without concepts count for a model that
    finds levels, and not for one that finds a concept. Whether a judge names concepts at all is asked of the
    judgements of all films.

    `names_of_definitions` maps the digests of definitions to their names, for sentences.
    """
    from obygaze_film.errors import FilmError
    from obygaze_film.judged_rate import rates_by_definition

    keys = _deciding_models(film)
    rates_of_model: dict[str, FilmRates] = {}
    reasons = []
    for key in keys:
        try:
            rates_of_model[key] = rates_by_definition(
                film,
                judged,
                key,
                labels=labelled,
                names=names_of_definitions,
                of_all_films=judged_in_all_films,
            )
        except FilmError as error:
            has_several_models = len(keys) > 1
            reasons.append(f"{key}: {error}" if has_several_models else str(error))
    return ModelEstimates(rates_of_model, reasons)


def _rate_documents(film: "Timeline", rates_of_model: "Mapping[str, FilmRates]") -> list[dict[str, Any]]:
    """Describe a film's rates, of all of its models, as JSON values."""
    import msgspec

    rates = [rate for film_rates in rates_of_model.values() for rate in film_rates.rates]
    return [{"movie": film.movie, **msgspec.to_builtins(rate, enc_hook=str)} for rate in rates]


def _claim_documents(film: "Timeline", rates_of_model: "Mapping[str, FilmRates]") -> list[dict[str, Any]]:
    """Describe what is claimed of a film's rates, such as a judge's share, as JSON values."""
    from obygaze_film.claims import document, rate_claims

    documents = []
    for film_rates in rates_of_model.values():
        documents += [{"movie": film.movie, **document(claim)} for claim in rate_claims(film_rates)]
    return documents


def _lines_of_rates(
    film: "Timeline", rates_of_model: "Mapping[str, FilmRates]", *, has_labels: bool
) -> list[str]:
    """Write a film's title and its rates.

    If the film has several models, a line such as "model linear:" begins the rates by each. With labels in
    place of the models' probabilities, it names what the model finds, such as "S:".
    """
    from obygaze_film.claims import Words, rate_claims, sentence
    from obygaze_film.claims.of_film import film_title
    from obygaze_film.claims.phrases import titles_sentence, why_not_as_computed
    from obygaze_film.positive import positive_of

    words = Words("en")
    has_several_models = len(_deciding_models(film)) > 1
    lines: list[str] = [titles_sentence([film_title(film, key) for key in rates_of_model], words)]
    for key, film_rates in rates_of_model.items():
        claims = rate_claims(film_rates)
        if has_several_models and has_labels:
            lines.append(f"  {positive_of(film.model(key)).text}:")
        elif has_several_models:
            lines.append(f"  model {key}:")
        lines += [f"  {sentence(claim, words)}" for claim in claims]
        lines += [f"  {text}" for text in why_not_as_computed(claims, words)]
    return lines


def _notices_of_models(movie: str, rates_of_model: "Mapping[str, FilmRates]") -> list[str]:
    """Write the notices of a film's rates by its models (key of the model -> rates).

    A notice that all models have is written once. A notice of some models alone names them by their keys.
    """
    models_of_notice: dict[str, list[str]] = {}
    for key, film_rates in rates_of_model.items():
        for notice in film_rates.notices:
            models_of_notice.setdefault(notice, []).append(key)
    lines = []
    for notice, models in models_of_notice.items():
        is_of_all_models = len(models) == len(rates_of_model)
        where = movie if is_of_all_models else f"{movie}, {', '.join(models)}"
        lines.append(f"{where}: {notice}")
    return lines


@command()
def compare(
    folders: Folders,
    *,
    films: Annotated[
        Path | None, option("Table of the films: movie or title, and any other columns.")
    ] = None,
    by: Annotated[
        str | None,
        option(
            "Column of --films that groups the films; or decade, which is made of year; or a variable of "
            "'film run --variables', at whose median the films are divided.  [default: one group]"
        ),
    ] = None,
    trend: Annotated[str | None, option("Column of numbers, such as year.", metavar="COLUMN")] = None,
    judged: Judged = (),
    key: ModelKey = None,
    labels: Labels = None,
    codebook: Annotated[
        str | None,
        option(
            "Codebook of the levels and concepts: a built-in name or your own file.  "
            "[default: the files' own]",
            type=click.STRING,
            metavar="NAME|FILE",
            shell_complete=complete_codebook,
        ),
    ] = None,
    out: Annotated[Path | None, option("Folder of the report.")] = None,
    html: Html = None,
    force: Force = False,
    json: Json = False,
) -> Answer:
    """Estimate mean rates of groups of films, their differences and a trend.

    The rate of a film is the share of its time that a judge would mark. People judge windows of some films
    blindly (judgements.csv in the films' folders, or --judged); these judgements correct the model's rates of
    all films. The 95 % intervals allow for both draws, of films and of windows.

    \b
    What you need
    - films to judge that were drawn at random: 5 in each group, 10 for a trend.
      If there are fewer, the command draws and names the films to judge next
    - the same judges in all groups (column annotator). A difference is refused
      if each judge judged one group alone

    Films that the model was trained on are left out. --html also shows each film's timeline, by year.

    \b
    Exit codes: 0 done, 1 error, 2 usage, 3 done, but a group, a difference
    or the trend has no estimate.

    \b
    Examples:
      obygaze film compare scored --by decade --html decades.html
      obygaze film compare scored --films films.csv --by genre --trend year \\
          --out genres
    """
    from obygaze_features.manifest import find_codebook, read_manifest
    from obygaze_film.claims import Words
    from obygaze_film.film_groups import read_facts
    from obygaze_film.group_report import comparison_report
    from obygaze_film.page.figures import years_figure
    from obygaze_film.page.side_by_side import comparison_page
    from obygaze_film.scored_files import JUDGEMENTS
    from obygaze_film.timeline import found_films
    from obygaze_film.workspace.judged_tables import read_judged
    from obygaze_models.report import check_folder

    if out is not None:
        check_folder(out, force=force)
    refuse_existing(html, force=force)

    # --- read the films, their judgements, and the table of films
    films_by_folder = found_films(folders)
    timelines = list(films_by_folder.values())
    asked_codebook = find_codebook(codebook) if codebook else None
    judgements = read_judged(films_by_folder, asked_codebook, (JUDGEMENTS,), judged)
    labelled = None if labels is None else read_manifest(labels)
    notes = [*judgements.notices]
    facts = None
    if films is not None:
        facts, notes_on_rows = read_facts(films, timelines)
        notes += notes_on_rows

    # --- compare, and write the report
    compared = obygaze_film.compare_films(
        timelines, judgements.manifest, facts, by=by, trend=trend, key=key, labels=labelled
    )
    compared = replace(compared, notes=(*notes, *compared.notes))

    figure = years_figure(compared, Words("en"), is_own_file=True)
    pictures = {}
    if figure:
        pictures["years.svg"] = lambda path: write_whole(path, figure)
    answer = finish(comparison_report(compared), Output(out, force=force, json=json), pictures)
    if html is not None:
        html.parent.mkdir(parents=True, exist_ok=True)
        write_whole(html, comparison_page(compared))
        answer = replace(answer, remarks=[*answer.remarks, f"page kept in {html}"])
    return replace(answer, code=0 if _has_all_estimates(compared) else PROBLEMS_FOUND)


def _has_all_estimates(compared: "FilmComparison") -> bool:
    """Whether any film was compared, and no group, difference or trend lacks its estimate."""
    if not compared.films:
        return False
    # The reason of a row says why it has no estimate, and is empty if it has one. A table without rows has no
    # columns.
    reasons = [*compared.groups.get("reason", ()), *compared.changes.get("reason", ())]
    return not any(reasons)


@command()
def learn(
    folders: Folders,
    *,
    manifest: Annotated[Path, option("Manifest of the corpus that the model was trained on.")],
    store: Annotated[Path, option("Store of the corpus's features.")],
    windows: Annotated[
        tuple[Path, ...],
        option(
            "Store of the windows that the films were scored from; repeatable.  [default: found in the "
            "folders near FOLDER]"
        ),
    ] = (),
    judged: Judged = (),
    key: Annotated[
        str | None,
        option(
            "Which of the films' models to train, by its name in their tables.  [default: the first that "
            "classifies]",
            name="save",
            metavar="MODEL",
        ),
    ] = None,
    policy: Annotated[
        Literal["raw", "paper", "released"], option("Label policy of the corpus, as for `evaluate`.")
    ] = "raw",
    same_meaning: Annotated[
        bool,
        option(
            "Declare that the definitions that the films were judged under mean the same as the corpus's, "
            "though their words differ."
        ),
    ] = False,
    licence: Annotated[str, option("Licence of the new model, an SPDX expression.")] = "NOASSERTION",
    out: Annotated[Path, option("Folder to write.")],
    html: Html = None,
    force: Force = False,
    json: Json = False,
) -> Answer:
    """Train the model of scored films anew, on its corpus and on what people judged in the films.

    Each judged span becomes a training clip, with the features of the windows in it. The judgements are
    those in the FOLDERs (judgements.csv, passages.csv) and in --judged. What judges agreed on afterwards
    (agreed.csv) replaces the judgements that it settles.

    The model is evaluated without the judgements and with them. Each film is tested by a model that was
    trained without that film and its judgements. Judgements made in sight of the model's score are used for
    training and never for testing.

    Writes into --out the model, manifest.csv (the corpus and the judged clips), the runs `before` and
    `after`, and in `scored` the films as the new model scores them.

    \b
    Examples:
      obygaze film learn scored --manifest films.csv --store stores/films \\
          --out learnt
      obygaze film learn scored/* --manifest films.csv --store stores/films \\
          --judged blind.csv --save pcbm_lr --out learnt
    """
    from obygaze_film.learning import learn_films
    from obygaze_film.timeline import found_films

    refuse_existing(html, force=force)
    films = found_films(folders)
    inputs = read_inputs(manifest, [store])
    labelled, notes = under_policy(inputs.manifest, policy)
    report, name = learn_films(
        films,
        (labelled, inputs.stores),
        out,
        windows=windows,
        judged=judged,
        notes=notes,
        licence=licence,
        same_meaning=same_meaning,
        key=key,
        policy=policy,
        progress=True,
        force=force,
    )
    kept = f"model kept in {out / name}; the films as it scores them: {out / 'scored'}"
    return replace(finish(report, Output(html=html, force=force, json=json)), remarks=[kept])
