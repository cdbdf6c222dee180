"""Find clips by a text, and score concepts by their words, in a planted space.

The space is planted: each concept of ObyGaze12 has a direction, its texts lie near it, and clips with the
concept Body or Look are moved along it. With real ones, extract clips with `xclip` and the list of
`obygaze codebook texts obygaze12` with `xclip-text`, of the same weights (docs/text-search.md).
Run it with: python examples/search_by_text.py
"""

import tempfile
from pathlib import Path

import numpy as np

import obygaze_features as of
import obygaze_models as om
from obygaze_features.manifest import concept_texts
from obygaze_features.store.testing import seal_arrays
from obygaze_models.concepts.texts import zero_shot_models

SPACE = "planted sha256:0123"
WIDTH, N_MOVIES, N_CLIPS = 24, 6, 30


def main(folder: Path) -> None:
    """Search for nudity, then score a concept by its words, and by its labels."""
    rng = np.random.default_rng(0)
    codebook = of.builtin_codebook("obygaze12")
    direction = {concept: rng.normal(size=WIDTH) for concept in codebook.visual_concepts}
    clips, vectors, spans = [], [], {}
    for movie in (f"film{number}" for number in range(N_MOVIES)):
        own = rng.normal(size=WIDTH)
        for place in range(N_CLIPS):
            clip_id, there = f"{movie}-c{place:03}", [one for one in direction if rng.random() < 0.3]
            spans[clip_id] = (4.0 * place, 4.0 * place + 4)
            clips.append(of.Clip(clip_id, movie, level="S" if there else "EN", concepts=tuple(there)))
            moved = [direction[one] for one in there if one in {"Body", "Look"}]
            vectors.append(sum(moved, own) + rng.normal(size=WIDTH))
    films = {clip.clip_id: clip.movie for clip in clips}
    arrays = {"xclip": {"pooled": np.array(vectors, np.float32)}}
    store = seal_arrays(folder / "films", films, arrays, spans=spans, space=SPACE)

    listed = concept_texts(codebook)
    said = np.array([3 * direction[one.concept] + rng.normal(size=WIDTH) for one in listed], np.float32)
    texts = {f"{number:06}": one.text for number, one in enumerate(listed)}
    thesaurus = seal_arrays(
        folder / "thesaurus",
        dict.fromkeys(texts, ""),
        {"xclip-text": {"pooled": said}},
        texts=texts,
        space=SPACE,
    )

    print(of.search(store, "Full nudity", text_store=thesaurus, top=5).to_frame())

    data = om.load_dataset(of.open_store(store), of.Manifest(tuple(clips), folder))
    models = [*zero_shot_models(data, of.open_store(thesaurus), "concept:Body"), "cav"]
    run = om.evaluate(data, models, task="concept:Body")
    print(run.metrics.query("metric == 'average_precision'")[["model", "pooled", "movie_mean"]])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        main(Path(place))
