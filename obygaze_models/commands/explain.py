"""`obygaze explain`: why a concept model decided as it did about one clip."""

import click


@click.command()
@click.argument("model")
@click.argument("stores", metavar="STORE...", nargs=-1, required=True)
@click.option("--clip", "clip_id", required=True, help="Id of the clip.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="CONCEPT=QUANTILE",
    help="Ask what changes if a concept's value were at this quantile (0 to 1) of the training clips' "
    "values; may be repeated.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def explain(
    model: str, stores: tuple[str, ...], clip_id: str, settings: tuple[str, ...], as_json: bool
) -> None:
    """Take apart what MODEL, a concept bottleneck, decides about one clip.

    Prints the decision, what each concept adds to the logit, and the probability if that concept alone were
    low or high among the training clips.

    \b
    Examples:
      obygaze explain models/pcbm_lr.model stores/more-films --clip tt9000007-003
      obygaze explain models/pcbm_lr.model stores/more-films \\
          --clip tt9000007-003 --set Body=0.95
    """
    from obygaze_features.store import open_store
    from obygaze_models.prediction.explain import as_json as to_json
    from obygaze_models.prediction.explain import explain as explain_clip
    from obygaze_models.prediction.explain import lines, parse_settings
    from obygaze_models.prediction.model import load_model
    from obygaze_models.prediction.predict import json_text, refuse_wrong_order, summary

    refuse_wrong_order(model, stores)
    set_to = parse_settings(settings)
    loaded = load_model(model)
    found = explain_clip(loaded, [open_store(store) for store in stores], clip_id, set_to)
    if as_json:
        click.echo(json_text({"model": summary(loaded.card), **to_json(found)}))
        return
    for line in lines(found, loaded):
        click.echo(line)
