"""`obygaze predict`, `explain`: apply a model, explain a decision; `obygaze model ls` and others: share."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import obygaze_features as of
import obygaze_models as om
from obygaze_features import manifest as manifests
from obygaze_features.door import read_text
from obygaze_features.io import write_whole
from obygaze_features.options import PROBLEMS_FOUND, Answer, Output, declared
from obygaze_features.screen import progress_bar, table

if TYPE_CHECKING:
    from obygaze_models.prediction.predict import Predicted
    from obygaze_models.prediction.saved_model import Model


@declared(__package__, "predict")
def predict(
    model: str,
    stores: tuple[str, ...],
    manifest: Path | None,
    frames: Path | None,
    zoo: str | None,
    output: Output,
) -> Answer:
    """Score the clips of stores with MODEL, saved by `obygaze evaluate --save`: a file, its URL, or a NAME.

    A NAME or NAME@VERSION is looked up in a list of models (`obygaze model ls`).

    Each clip gets a logit, a calibrated probability with its 80 % band (of films drawn anew), a call, and the
    share of training clips nearer than it (unlike). A clip farther than 99 % of them is flagged and gets no
    probability. A concept model adds each concept's value, probability and contribution to the logit.

    The stores' features must be made as those the model was trained on: the same backbone,
    weights, preparation, sampling, software. What a model file holds is never executed.

    \b
    Examples:
      obygaze evaluate films.csv stores/films --task hn_s --test enhn_s \\
          --save pcbm_lr
      obygaze predict run/pcbm_lr.model stores/more-films --out scores.csv
      obygaze predict run/pcbm_lr.model stores/a stores/b --json
      obygaze predict run/attention.model stores/more-films --frames frames.csv
      obygaze predict https://lab.example.org/pcbm_lr.model stores/more-films
      obygaze predict hn-linear@1.0.0 stores/more-films --zoo /share/models
    """
    from obygaze_models.prediction.predict import document, refuse_wrong_order

    refuse_wrong_order(model, stores)
    output.refuse_existing(frames)
    loaded = om.load_model(model, zoo=zoo)
    opened = [of.open_store(store) for store in stores]
    clips = None if manifest is None else manifests.read_manifest(manifest)
    scored = om.predict(loaded, opened, clips, progress=True)
    of_frames = None if frames is None else om.predict_frames(loaded, opened)
    if output.out is not None:
        scored.write(output.out)
    if frames is not None and of_frames is not None:
        write_whole(frames, str(of_frames.to_csv(index=False, lineterminator="\n")))
    told = [*_notices(scored, loaded)]
    told += [] if output.out is None else [f"{len(scored.table)} predictions in {output.out}"]
    told += [] if of_frames is None else [f"{len(of_frames)} frames in {frames}"]
    if output.out is not None and not output.json:
        return Answer(None, remarks=told)
    return Answer(document(scored, loaded, opened), lambda: _predictions_table(scored), told)


def _predictions_table(scored: "Predicted") -> str:
    """Lay out the columns that fit a terminal; the CSV file has all columns."""
    import pandas as pd

    decimals = {"start_s": 2, "logit": 3, "p": 2, "p_low": 2, "p_high": 2, "unlike": 3}
    shown = ["clip_id", "start_s", "logit", "p", "p_low", "p_high", "called", "unlike", "flags"]

    def cell(name: str, value: Any) -> str:
        if pd.isna(value):
            return ""
        return f"{value:.{decimals[name]}f}" if name in decimals else str(value)

    columns = [[cell(name, value) for value in scored.table[name].astype(object)] for name in shown]
    return table(list(zip(*columns, strict=True)), shown, right=range(1, len(shown) - 1))


def _notices(scored: "Predicted", model: "Model") -> tuple[str, ...]:
    """Print what was trained and predicted, and which predictions are unreliable."""
    from obygaze_features.templates import sentences
    from obygaze_models.persistence.card import FLAT, PROTOCOL
    from obygaze_models.prediction.out_of_distribution import OUT_OF_DISTRIBUTION
    from obygaze_models.prediction.predict import PARTIAL, TRAINED_ON
    from obygaze_models.prediction.reading import WITHOUT

    card, table = model.card, scored.table
    far = scored.has(OUT_OF_DISTRIBUTION)
    unlike = table.loc[far, "movie"].value_counts(sort=False)
    return sentences(
        __package__,
        "predict.txt.jinja",
        card=card,
        model=model,
        n=len(table),
        n_called=int(table["called"].sum()),
        n_far=int(far.sum()),
        seen=int(scored.has(TRAINED_ON).sum()),
        lacks=[(each["name"], int(scored.has(WITHOUT + each["name"]).sum())) for each in card.modalities],
        partial=int(scored.has(PARTIAL).sum()),
        unlike=[(movie, count, int((table["movie"] == movie).sum())) for movie, count in unlike.items()],
        is_joined=card.number == PROTOCOL,
        flat=FLAT,
        excluded=sorted(scored.excluded.items()),
    )


@declared(__package__, "explain")
def explain(model: str, stores: tuple[str, ...], clip_id: str, settings: tuple[str, ...]) -> Answer:
    """Explain the decision of MODEL, which has concepts, attention or several modalities, on one clip.

    Prints the decision, each concept's contribution to the logit, and the probability if only that concept
    were low or high among the training clips; and, if the store keeps frames, for each of them its time and
    the concepts' probabilities or its attention weight and contribution. Of a model of several modalities
    prints what each contributes.

    \b
    Examples:
      obygaze explain run/pcbm_lr.model stores/more-films --clip tt9000007-003
      obygaze explain run/pcbm_lr.model stores/more-films \\
          --clip tt9000007-003 --set Body=0.95
      obygaze explain run/attention.model stores/more-films --clip tt9000007-003
    """
    from obygaze_models.prediction.explain import describe, parse_settings
    from obygaze_models.prediction.explain import explain as explain_clip
    from obygaze_models.prediction.predict import refuse_wrong_order, summary

    refuse_wrong_order(model, stores)
    set_to = parse_settings(settings)
    loaded = om.load_model(model)
    explained = explain_clip(loaded, [of.open_store(store) for store in stores], clip_id, set_to)
    document = {"model": summary(loaded.card), **asdict(explained)}
    return Answer(document, describe(explained, loaded))


# --- lists of models
# ---------------------------------------------------------------------------
@declared(__package__, "model ls")
def ls(zoo: str | None) -> Answer:
    """List the models of a list, with how well each did on films left out.

    \b
    Examples:
      obygaze model ls
      obygaze model ls --zoo https://lab.example.org/models
      obygaze model ls --zoo hf://datasets/lab/models --json
    """
    import msgspec

    from obygaze_models.persistence.sharing import TITLES
    from obygaze_models.persistence.zoo_list import Score, default_zoo, read_zoo

    def shown(score: Score) -> str:
        held = "" if score.low is None else f" [{score.low:.2f}, {score.high:.2f}]"
        return f"{TITLES.get(score.metric, score.metric)} {score.value:.2f}{held}"

    place = zoo or default_zoo()
    entries = read_zoo(place)
    rows = []
    for entry in entries:
        score = shown(entry.scores[0]) if entry.scores else ""
        reads = " + ".join(entry.reads)
        rows.append((entry.name, entry.version, entry.task, reads, score, entry.licence))
    text = table(rows, ("model", "version", "task", "reads", "films left out, 95 % retrained", "licence"))
    document: dict[str, Any] = {"zoo": place, "models": msgspec.to_builtins(entries)}
    return Answer(document, text if rows else f"{place}: no model yet")


@declared(__package__, "model card")
def card(model: str, zoo: str | None) -> Answer:
    """Print the page of MODEL: a NAME or NAME@VERSION of a list, a file, or a URL of one.

    It says what the model answers, how well and on whom it fails, what it must not be used for, what it was
    trained on and how, and how to cite it. --json gives the file's card with the shapes of its arrays.
    Nothing in the file is executed.

    \b
    Examples:
      obygaze model card words-s
      obygaze model card words-s@1.0.0 --zoo /share/models > words-s.md
      obygaze model card run/pcbm_lr.model
      obygaze model card https://lab.example.org/pcbm_lr.model --json
    """
    from msgspec import structs

    from obygaze_models.persistence.sharing import describe_model

    file, page = describe_model(model, zoo)
    arrays = {
        name: {"dtype": str(array.dtype), "shape": list(array.shape)}
        for name, array in {**file.arrays, **file.about}.items()
    }
    return Answer({**structs.asdict(file.card), "arrays": arrays}, page.rstrip("\n"))


@declared(__package__, "model verify")
def verify(zoo: str | None) -> Answer:
    """Read every model of a list: its digest, its file, and whether the list says what its card says.

    Exits with 3 if a model is not what is listed.

    \b
    Examples:
      obygaze model verify
      obygaze model verify --zoo /share/models --json
    """
    from obygaze_models.persistence.sharing import verify_models

    found = verify_models(zoo)
    document = [{"model": entry.label, "problem": problem} for entry, problem in found]
    lines = [f"{entry.label}: {problem or 'as listed'}" for entry, problem in found]
    return Answer(
        {"models": document},
        "\n".join(lines) or "no model yet",
        code=PROBLEMS_FOUND * any(problem for _, problem in found),
    )


@declared(__package__, "model push")
def push(model: str, destination: str, name: str, version: str, notes: Path | None) -> Answer:
    """Put the file MODEL into the list ZOO: a folder, s3://BUCKET/FOLDER or hf://datasets/OWNER/NAME.

    The model's page is written beside it. A model without a licence is refused, and a version that is there
    is never replaced.

    \b
    Examples:
      obygaze evaluate films.csv stores/films --task hn_s --save linear \\
          --licence CC-BY-4.0 --out run
      obygaze model push run/linear.model /share/models --name hn-linear
      obygaze model push run/linear.model hf://datasets/lab/models \\
          --name hn-linear --version 1.1.0 --notes limits.md
    """
    from obygaze_models.persistence.sharing import push_model

    said = "" if notes is None else read_text(notes)
    entry = push_model(model, destination, name, version, notes=said)
    document = {"model": entry.label, "file": entry.file, "sha256": entry.sha256, "zoo": destination}
    return Answer(
        document, f"{entry.label} in {destination}: {entry.file}, {entry.octets} bytes, {entry.sha256}"
    )


@declared(__package__, "model pull")
def pull(name: str, folder: Path, zoo: str | None) -> Answer:
    """Copy the model NAME or NAME@VERSION of a list into FOLDER (default: models).

    The file is checked against its digest; a stopped copy resumes.

    \b
    Examples:
      obygaze model pull words-s
      obygaze model pull hn-linear@1.1.0 models \\
          --zoo https://lab.example.org/models
    """
    from obygaze_models.persistence.sharing import pull_model

    with progress_bar("pull", "B", scaled=True) as progress:
        path = pull_model(name, folder, zoo=zoo, progress=progress)
    return Answer({"file": str(path)}, str(path))
