"""Write the model card of a trained X-CLIP: description, retrieval measures, training data."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tabulate import tabulate

PROCEDURES = {
    "float32": "float32 throughout; the published procedure keeps CLIP in float16, so this is not it",
    "bfloat16": "bfloat16 autocast, float32 weights and moments; "
    "the published procedure is float16, so this is not it",
    "published": "as published: CLIP's weights and moments in float16, without loss scaling",
}


def card(
    record: Mapping[str, Any], epochs: Sequence[Mapping[str, Any]], best: int, test: Mapping[str, Any]
) -> str:
    """Return the card in Markdown; the same training gives the same bytes."""
    movies, data = record["movies"], record["data"]
    shared = ", ".join(f"{title} ({count})" for title, count in movies["shared_with_obygaze12"].items())
    left_out = ", ".join(f"{split} {of['left_out']}" for split, of in data.items())
    table = tabulate(
        _rows(epochs, test), headers="keys", tablefmt="github", floatfmt=".2f", disable_numparse=[0, 1]
    )
    return f"""# X-CLIP for retrieval, trained on LSMDC

Trained by `obygaze train xclip-lsmdc` from CLIP (Ma et al., X-CLIP, ACM MM 2022). `model.safetensors` holds
epoch {best}, which has the highest R@1 (text to video) on the validation set, in float32:

    obygaze extract films.csv stores/films --backbone xclip-lsmdc --weights THIS_FOLDER

Arithmetic: {PROCEDURES[record["arithmetic"]]}. Share of the towers' gradients: {record["gather_share"]:g}.

## Retrieval

The test set has {test["sentences"]} sentences, the validation set {epochs[best]["sentences"]}.
R@1 falls as a set grows.

{table}

`published`: as the published code counts, where ties add entries. `tie-safe`: each query once, ties by their
mean rank, one column per clip.

## What it has seen

Sentences without a usable video: {left_out} (`left_out.csv`).
Films left out on purpose: {", ".join(movies["excluded"]) or "none"}.
ObyGaze12 films in the training data, with their sentences: {shared or "none found by name"}.

## Record

```json
{json.dumps(record, indent=2, ensure_ascii=False)}
```
"""


def _rows(epochs: Sequence[Mapping[str, Any]], test: Mapping[str, Any]) -> list[dict[str, Any]]:
    evaluated = [(f"validation, epoch {number}", found) for number, found in enumerate(epochs)]
    rows = []
    for what, found in [*evaluated, ("test, chosen epoch", test)]:
        for direction in ("text_to_video", "video_to_text"):
            for counting, values in (
                ("published", found["published"][direction]),
                ("tie-safe", found["tie_safe"][direction]["mean"]),
            ):
                rows.append(
                    {
                        "data": f"{what} ({found['sentences']} sentences, {found['clips']} clips)",
                        "direction": f"{direction.replace('_', ' ')}, {counting}",
                        **values,
                    }
                )
    return rows
