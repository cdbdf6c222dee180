"""List the names of models without importing any: their modules take a second."""

from collections.abc import Mapping

from obygaze_features.plugins import MODELS, points

BASELINES = "obygaze_models.models.baselines"

LENGTH = "length"
"""The baseline that reads only the lengths of clips, for clips that annotators delimited themselves."""

STAGING = "staging"
"""The baseline that reads only the variables of a table (`evaluate --variables`), and no features."""

ANSWERS = "answers"
"""The zero-shot model whose scores are the answers of a vision-language model (`evaluate --answers`)."""

OTHER_ANNOTATOR = "other_expert"
"""The label that the other annotators gave to a clip, as a reference for clips with several annotators."""

HOMES: Mapping[str, tuple[str, ...]] = {
    "obygaze_models.models.linear": ("linear",),
    "obygaze_models.models.mlp": ("mlp",),
    "obygaze_models.models.attention": (
        "attention",
        "attention_time",
        "attention_uniform",
        "attention_exchanged",
        "attention_shuffled",
        "mean_frames",
        "max_frames",
    ),
    "obygaze_models.models.attentive": ("attentive", "attentive_tokens"),
    "obygaze_models.concepts.bottleneck": (
        *("pcbm_lr", "pcbm_dt", "pcbm_lr_random", "pcbm_lr_shuffled"),
        "concept_labels",
    ),
    "obygaze_models.concepts.in_time": ("pcbm_time", "pcbm_time_unordered", "pcbm_time_shuffled"),
    "obygaze_models.concepts.units": ("units",),
    "obygaze_models.concepts.linear_cav": ("cav",),
    BASELINES: (
        "always_positive",
        "always_negative",
        "random_prevalence",
        "random_half",
        "movie_prior",
        "median_level",
        "random_level",
    ),
}
"""The zoo's models by the module whose `SPECS` describe them, in the order of every table."""


def name_in_zoo(name: str) -> str:
    """Return the name under which the zoo has a model of a run: without the annotator it is trained for.

    With ``--experts each`` a run has a model for the labels of each annotator, named ``NAME@ANNOTATOR``.

    Examples
    --------
    >>> name_in_zoo("pcbm_lr_random@ann"), name_in_zoo("linear")
    ('pcbm_lr_random', 'linear')
    """
    return name.partition("@")[0]


def model_names() -> list[str]:
    """List the names of the zoo's models, then those of models of installed packages."""
    names: list[str] = []
    # HOMES maps each module of the zoo to the names of its models.
    for names_of_module in HOMES.values():
        names += names_of_module

    # Installed packages add models by entry points.
    names += [point.name for point in points(MODELS)]
    return names
