"""Find the stretches of a film whose words are most like those that experts marked, by its subtitles alone.

It applies a model that obygaze ships, and prints first what it can't do. It needs subtitles in English
(SRT, WebVTT, ASS, or a film with a track of them), a copy of sentence-transformers/all-MiniLM-L6-v2 and
PyTorch. Run it with: python examples/words_of_a_film.py FILM.srt --weights FOLDER [--model words-speech]
"""

import argparse
import tempfile
from collections import defaultdict
from pathlib import Path

import pandas as pd

import obygaze_features as of
import obygaze_models as om
from obygaze_features.backbones import load_text_backbone
from obygaze_film.rows import read_subtitle_lines
from obygaze_models.persistence.sharing import describe_model

SECONDS = 30


def said_in_windows(subtitles: Path) -> pd.DataFrame:
    """Gather what is said in each window of 30 s; each line's words are spread evenly over its time."""
    said = defaultdict(list)
    for start_s, end_s, text in read_subtitle_lines(subtitles)[0]:
        words = text.split()
        for number, word in enumerate(words):
            at = start_s + (number + 0.5) / len(words) * (end_s - start_s)
            said[int(at // SECONDS)].append(word)
    rows = [(f"{window:05}", " ".join(words)) for window, words in sorted(said.items())]
    return pd.DataFrame(rows, columns=["text_id", "text"])


def main() -> None:
    """Print the model's limits, then the windows that it puts first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("subtitles", type=Path)
    parser.add_argument("--weights", required=True, help="folder of all-MiniLM-L6-v2")
    parser.add_argument("--model", default="words-s", help="words-s, words-speech or words-body")
    asked = parser.parse_args()
    windows = said_in_windows(asked.subtitles)
    with tempfile.TemporaryDirectory() as place:
        windows.to_csv(Path(place, "windows.csv"), index=False)
        sentence = load_text_backbone("sentence", weights=asked.weights)
        store = of.extract(Path(place, "windows.csv"), Path(place, "windows"), [sentence], licence="CC0-1.0")
        found = om.predict(om.load_model(asked.model), store).table
    limits = next(
        part for part in describe_model(asked.model)[1].split("\n\n") if part.startswith("**Read this")
    )
    print(f"{limits}\n\n{asked.model}, of {len(windows)} windows in which something is said:")
    found = found.merge(windows, left_on="clip_id", right_on="text_id").nlargest(5, "logit")
    for row in found.itertuples():
        minutes, seconds = divmod(SECONDS * int(row.clip_id), 60)
        p = "unlike its films" if pd.isna(row.p) else f"{row.p:.2f} [{row.p_low:.2f}, {row.p_high:.2f}]"
        print(f"{minutes:4}:{seconds:02}  {p}  {row.text[:80]}")


if __name__ == "__main__":
    main()
