"""Numbers, drawings and choices of an invented film are those of the frozen files, whatever the words are.

A change that means to change them deletes the file and runs this test once: it writes the file anew, and
fails. What differs is read in the review.
"""

import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from msgspec import to_builtins
from msgspec.structs import replace as changed

from obygaze.cli import main
from obygaze_features.manifest import Clip, Manifest, builtin_codebook, write_manifest
from obygaze_film import evaluation
from obygaze_film.evaluation import evaluate_films, evaluation_report
from obygaze_film.exchange import export
from obygaze_film.judged_rate import correct_rate
from obygaze_film.page import film_page, phrases
from obygaze_film.score import score_film
from obygaze_film.windows_to_judge import choose_next
from obygaze_models.report import asset
from tests.film.films import film_store, shots_of
from tests.film.page.invented import PLANTED, invented_film
from tests.film.test_reasons import with_model

SMALL = {"duration_s": 540.0, "n_rows": 40}
BOOK = builtin_codebook("obygaze12")


def frozen(name, text):
    """Compare with a frozen file."""
    path = Path(__file__).parent / "frozen" / f"{name}.txt"
    if not path.exists():
        path.write_text(text, encoding="utf-8")
        pytest.fail(f"{path} is new")
    assert text == path.read_text(encoding="utf-8")


def numbers(text):
    """Keep the numbers of each line, rounded to six digits."""
    lines = (re.findall(r"[-+−<]?\d[\d:,]*\.?\d*(?:e-\d+)?", line) for line in text.splitlines())
    rounded = (
        " ".join(re.sub(r"\d+\.\d{6,}", lambda n: f"{float(n[0]):.6g}", one) for one in line)
        for line in lines
    )
    return "\n".join(filter(None, rounded)) + "\n"


@pytest.fixture(scope="module")
def films():
    """Films of all kinds: whole, withheld, trained on, of another codebook, without calibration."""
    whole = invented_film("tt01", "A", year=2009, traced=True, **SMALL)
    flagged = replace(whole, table=whole.table.assign(flags=["bars;short", *whole.table["flags"][1:]]))
    second = changed(whole.model(), key="linear", title="L", concepts=[], by_concepts=False)
    two = replace(
        flagged,
        record=changed(whole.record, models=[whole.model(), second]),
        table=pd.concat(
            [flagged.table, whole.table.assign(model="linear", p=whole.table["p_low"])], ignore_index=True
        ),
    )
    half = invented_film("b", "B", year=None, unlike=((0.0, 0.3),), **SMALL)
    half = with_model(
        half, clip_s=60.0, metrics=[{"metric": "auc", "movie_mean": 0.6, "n_movies": 9}], licence=""
    )
    half = replace(
        half, record=changed(half.record, windows=changed(half.record.windows, hop_s=None), human=None)
    )
    levels = (("calm",), ("violent", "gore"))
    trained = invented_film("c/d", "C", seed=3, trained_on=True, codebook="violence", levels=levels, **SMALL)
    bare = with_model(
        invented_film("e", "E", concepts=(), seed=4, **SMALL),
        calibration=None,
        metrics=[],
        rate=half.model().rate,
    )
    open_ended = invented_film("f", "F", year=1989, seed=5, **SMALL)
    rate = changed(open_ended.model().rate, bracket_low=None, bracket_high=None)
    return [two, half, trained, bare, with_model(open_ended, rate=rate)]


@pytest.fixture(scope="module")
def truth():
    """Two annotators of three films, the second six seconds late and without the last passage."""
    clips = [
        Clip(
            f"{movie[0]}-{name}-{place}",
            movie,
            start_s=540 * a + late,
            end_s=540 * b + late,
            level="S",
            annotator=name,
        )
        for movie in ("tt01", "c/d", "f")
        for name, late, n in (("AB", 0, 5), ("CD", 6, 4))
        for place, (a, b) in enumerate(PLANTED[:n])
    ]
    return Manifest(tuple(clips), Path(), BOOK)


@pytest.fixture(scope="module")
def judged(films):
    """Blind judgements of two people, of whom one sees less."""
    clips = choose_next(films[:1], 10, blind=True)
    inside = [any(clip.start_s < 540 * b and 540 * a < clip.end_s for a, b in PLANTED) for clip in clips]
    return Manifest(
        tuple(
            replace(
                clip,
                clip_id=f"{name}-{clip.clip_id}",
                level="S" if is_in and at != less else "EN",
                annotator=name,
            )
            for name, less in (("AB", -1), ("CD", inside.index(True)))
            for at, (clip, is_in) in enumerate(zip(clips, inside, strict=True))
        ),
        Path(),
        BOOK,
    )


@pytest.mark.parametrize("first", [1, 2, 5])
def test_a_page(films, judged, monkeypatch, first):
    """Every text is its name and what is filled in; of the markup, the values of attributes are kept."""

    def named(*place):
        texts = tomllib.loads(asset(*place))
        places = {key: [key, *re.findall(r"{\w*}", text)] for key, text in texts.items()}
        return "\n".join(
            f"{key} = {json.dumps(' '.join(places[key]) if re.search('[a-z]{2}', text) else text)}"
            for key, text in texts.items()
        )

    monkeypatch.setattr(phrases, "asset", named)
    rate = changed(correct_rate(films[0], judged)[0], high=0.6)  # the end of a scale
    rates = {"tt01": [rate], "b": [changed(rate, worth=None)]} if first > 1 else {}
    page = film_page(films[:first], top=6, rates=rates, stills={"f": {1: "data:,"}})
    page = re.sub(r"<meta[^>]*>|<style.*?</style>|<script>.*?</script>", "", page, flags=re.DOTALL)
    lines = (
        re.sub("<[^>]*>", lambda tag: " ".join(["", *re.findall('"([^"]*)"', tag[0]), ""]), line)
        for line in page.splitlines()
    )
    text = "".join(f"{' '.join(line.split())}\n" for line in lines if line.strip())
    assert not re.search(r"\bNone\b|\bnan\b", text)
    frozen(f"page-{first}", text)


def test_an_export(films, kind):
    frozen(kind, "".join(numbers(export(film, kind, top=6, rate=25)) for film in films[:2]))


@pytest.mark.parametrize("kind", ["shots", "steps"])
def test_scores(trained, tmp_path, kind):
    """To two decimals: models are fitted."""
    store = film_store(tmp_path, "x", end_s=100.0, planted=((20.0, 45.0),), failed=["x-0012", "x-0013"])
    models = [trained.paths[name] for name in ("pcbm_lr", "bank")]
    film = score_film(store, models, shots=shots_of("x", 100.0) if kind == "shots" else None)
    tables = [film.table, film.segments(), pd.DataFrame(map(to_builtins, map(film.rate, film.keys)))]
    tables += [pd.DataFrame(map(to_builtins, [model.flags for model in film.record.models]))]
    frozen(f"scores-{kind}", "".join(numbers(table.round(2).to_csv()) for table in tables))


def test_evaluation_and_judgements(films, truth, judged, monkeypatch):
    monkeypatch.setattr(evaluation, "N_DRAWS", 50)
    found = evaluate_films([films[0], films[2], films[4]], truth, n_shifts=20)
    blocks = evaluation_report(found).blocks
    frozen(
        "evaluation",
        numbers(
            found.summary.to_csv()
            + found.by_film.to_csv()
            + "\n".join(f"{row}" for block in blocks for row in block.rows)
        ),
    )
    chosen = [*judged, *choose_next(films[:2], 12), *choose_next(films[:1], 9, judged=list(judged))]
    rows = (f"{clip.clip_id} {clip.start_s} {clip.end_s} {clip.extras}" for clip in chosen)
    frozen(
        "judgements",
        numbers("\n".join([*rows, json.dumps(to_builtins(correct_rate(films[0], judged)[0]), indent=0)])),
    )


def test_what_commands_print(films, judged, trained, tmp_path, capsys):
    model = trained.paths["pcbm_lr"]
    films[0].write(tmp_path / "a")
    write_manifest(judged, tmp_path / "judged.csv")
    for movie, window_s in (
        ("x", 8.0),
        ("y", 5.0),
    ):  # of a model of clips of 4 s
        film_store(tmp_path, movie, end_s=100.0, window_s=window_s)
    (tmp_path / "facts.csv").write_text("movie,title,year\ny,Y,1931\n", encoding="utf-8")
    for words in (
        ("rate", tmp_path / "a", tmp_path / "judged.csv"),
        ("next", tmp_path / "a", "--n", "7", "--out", tmp_path / "next.csv"),
        ("score", model, tmp_path / "x", "--out", tmp_path / "x-scored"),
        ("score", model, tmp_path / "y", "--films", tmp_path / "facts.csv", "--out", tmp_path / "y-scored"),
        ("score", trained.paths["bank"], tmp_path / "y", "--out", tmp_path / "bank"),
        ("report", tmp_path / "y-scored", "--out", tmp_path / "new/pages/1.html"),
        ("export", tmp_path / "y-scored", "--as", "edl", "--out", tmp_path / "new/lists/2.edl"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(["film", *map(str, words)])
        assert not ended.value.code
    frozen("commands", numbers(capsys.readouterr().out.replace(str(tmp_path), "")))
