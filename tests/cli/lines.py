"""What each command must do, group by group of those that share a folder.

Below a command stands `CODES FILE ... | WORDS`: `0` where nothing stands. `-FILE` is not there; `=` before a
command: a second run is refused, and makes the same bytes with --force.
"""

from pathlib import Path

from tests.cli.table import EAT, GENDERS, RELEASED

ROWS = Path(__file__).parent / "rows"
"""Folder of further groups, each in a file GROUP.txt, whose rows need no words of this file."""


CORPUS = "in/films.csv in/films"
PLANTED = f"{CORPUS} --task calm_violent --model linear"
LAB = "--backbone lab --licence CC0-1.0"
EACH = "--array frames --times shown_ms --columns !score --allow-missing"
ALLOWED = f"--allow-missing --declared in/declared.json {LAB}"
TINY = "--weights in/clip --device cpu --n 2 --workers 1 --licence CC0-1.0"
WORDY = "--captions in/shoes.csv --items in/items.csv --min-total 1 --ratio O NO"
LISTED = "--captions in/captions.csv --objects-list in/objects.txt --published BLIP"
PUBLISHED = "in/published.csv in/marked --protocol paper"
SCORED = "--captions in/shoes.csv --objects in/objects.csv --lm in/lm.csv"
MAPS = "--maps in/maps.zarr --roi in/roi.csv"
BOOK = "in/violence.codebook.toml"
LSMDC = "--annotations in/lsmdc/annotations --videos in/lsmdc/videos --batch 4 --epochs 1 --workers 1"
BOTH = "in/backbones:vivit in/backbones:xclip"
LEARN = "--manifest in/films.csv --store in/films --judged in/seen.csv"
GERMAN = "--column start_s=Anfang --column end_s=Ende --column level=Stufe"
COMMAND_TABLES = {
    "manifests": f"""
manifest import folder in/videos --out out/videos.csv
    0 out/videos.csv | out/videos.csv: 1 clip of 1 movie (1 without level)
manifest import spans in/spans.csv --videos in/videos --out out/spans.csv
    0 | read 'Sure' as S (1 row)
manifest import spans in/codes.csv --videos in/videos --rate 24 --out out/codes.csv
manifest import spans in/ratings.csv {GERMAN} --out out/rated.csv
    0 | out/rated.csv: 2 clips of 1 movie (1 EN, 1 S)
manifest import spans in/wide.csv --wide AB,CD --out out/wide.csv
    0 | 3 of 3 spans read
codebook guess in/ratings.csv --column level=Stufe --out out/guessed.toml
    0 out/guessed.toml | 2 levels (EN (1), S (1)), 0 concepts | put the levels in order
codebook guess in/wide.csv --wide AB,CD --out out/guessed-wide.toml --json
    0 | "EN": 2
manifest import spans in/fights.csv --videos in/videos --codebook {BOOK} --out out/fights.csv
    0 out/fights.codebook.toml | out/fights.csv: 2 clips of 1 movie (1 unsure, 1 violent)
manifest import images in/stills --out out/stills.csv --json
    0 | "clips": 2
manifest import film in/video.mp4 --window 1 --shots none --out out/windows.csv --json
    0 out/windows.csv | "remainder_s"
manifest import film in/video.mp4 --frames 8 --stride 4 --shots none --out out/frames.csv
    0 out/frames.csv | windows of 8 frames every 4
manifest import film in/video.mp4 --window 2 --out out/shots.csv
    0 out/shots.shots.csv | 1 shot (own)
manifest import mediaeval15 in/mediaeval15 --out out/m15.csv
    0 | 60 clips of 6 movies
manifest inspect in/segments.csv
    0 | ann, bea | ... and 59 more
manifest inspect in/films.csv --json
    0 | "missing": 6
=manifest project in/segments.csv --window 8 --out out/projected.csv
    0 | 4 movies
manifest project in/segments.csv --onto in/scenes.csv --merge both --out out/both.csv
manifest project in/segments.csv --onto in/scenes.csv --per-annotator --out out/onto.csv
    0 | replaced the labels that 1 clip of | nobody annotated z | left out the annotations of m1
manifest agreement in/segments.csv
    0 | ann / bea | projected onto windows of 46 s
manifest agreement in/same.csv --json
    0 | "all_levels": null
manifest disagreements in/segments.csv --out out/conflicts
    0 | documents for ELAN in out/conflicts
codebook template obygaze12 in/video.mp4 --annotator AB --out out/blank
    0 out/blank/video.eaf | 1 blank document of codebook obygaze12
manifest import spans out/blank/video.eaf --decisions --out out/decided.csv
    3 | left out 2 tiers
manifest disagreements in/segments.csv
    0 | first / second | differ; in
manifest disagreements in/same.csv --json
    0 | "other readings"
manifest disagreements in/answered.csv
    0 | shuffled | left out in turn: ann
manifest alttest in/answered.csv --machine vlm --task en_s
    0 | advantage | 4 films; left out in turn: ann
manifest alttest in/answered.csv --json
    0 | "winning_rate"
=manifest rank in/scaled.csv in/pairs.csv --scale valence --out out/ranked.csv
    0 | reliability | out/ranked.csv: 6 of 6 clips ranked
manifest rank in/scaled.csv --scale valence --ask --out out/asked.csv
    0 out/asked.csv | 5 pairs to judge
=manifest assign in/marked.csv --annotator AB --annotator CD --each 1 --calibration 1 --out out/round.csv
    0 | in this order | out/round.csv: the round
manifest progress out/round.csv in/same.csv --json
    0 | "against"
codebook questions in/marked.csv --out out/questions.jsonl
    0 out/questions.jsonl | 12 questions about 64 clips | not asked: 4 concepts
manifest agreement in/segments.csv --alpha 1
    0 | aligned | ±
manifest stats in/marked.csv
    0 | label policy paper: 64 clips | label policy released
=manifest stats in/segments.csv --by annotator --out out/by --html out/by.html
    0 out/by.html | Levels and concepts by annotator
manifest stats in/marked.csv --sets --policy raw --json
    0 | "policy": "raw"
manifest stats in/segments.csv --sweep 0.1,0.6 --onto in/scenes.csv
    0 | projected onto the clips of scenes.csv; label policy paper
codebook show
    0 | 4 levels (3 in tasks) | mobygaze
codebook show obygaze12
    0 | label policies: paper, released, raw | Voyeurism (character watching another one
codebook show in/films.csv --json
    0 | "name": "violence"
codebook init --out out/json.toml --json
codebook check out/json.toml --json
codebook init --out out/mine.toml
    0 out/mine.toml | edit it, then run: obygaze codebook check
codebook check out/mine.toml
    0 | codebook my-codebook 1: 3 levels (2 in tasks), 2 concepts (1 visual), 1 task
=codebook texts obygaze12 --out out/texts.csv
    0 out/texts.csv | of 8 concepts
folds in/films.csv --task calm_violent
    0 | protocol strict | 0 f0
folds in/published.csv --task hn_s --test enhn_s --protocol paper
    0 | no test clip is in training or validation | label policy released
folds in/published.csv --task hn_s --test enhn_s --protocol paper --movies --json
    0 | "test_movie"
folds in/published.csv --task concept:body --protocol paper --against EN --json
    0 | "concept:Body-vs-EN"
""",
    "stores": f"""
frames in/video.mp4
    0 | 32 of 32 frames, 64x48 | status ok, method
=frames in/video.mp4 --n 2 --npz out/frames.npz --sheet out/sheet.png --json
    0 out/frames.npz out/sheet.png | "policy": "uniform" | saved
frames in/video.mp4 --npz out/frames.npz --indices 0,5 --force
frames in/video.mp4 --fps 2 --start 0:00.5 --end 2
    0 | 3 of 32 frames
frames in/video.mp4 --keyframes 2
manifest import folder in/videos --out out/videos.csv
extract out/videos.csv out/videos --n 2 --dry-run --json
    0 -out/videos.staging | "feature_bytes"
extract out/videos.csv out/videos --n 2 --workers 1 --licence CC0-1.0 --shard 0/2
    0 out/videos.staging | 1 ok, 0 partial, 0 failed, 0 left to do
extract out/videos.csv out/videos --n 2 --dry-run
    0 | nothing to do: every clip is done
extract out/videos.csv out/videos --n 2 --workers 1 --licence CC0-1.0 --json
    0 out/videos-1.0.0 | "left": 0
extract out/videos.csv out/rated --per-second 2 --workers 1 --licence CC0-1.0
    0 out/rated-1.0.0 | 1 ok
manifest import film in/video.mp4 --window 2 --shots none --out out/more.csv
extract out/more.csv out/rated --append out/rated-1.0.0 --store-version 1.1.0 --per-second 2 --workers 1
    0 out/rated-1.1.0 | chunks of frames are those of rated-1.0.0
manifest import images in/stills --out out/stills.csv
extract out/stills.csv out/stills --workers 1 --shard 0/2
    0 | obygaze store seal | --licence SPDX
extract out/stills.csv out/stills --workers 1 --shard 1/2 --licence CC0-1.0
    0 | --licence CC0-1.0
manifest sheets in/films.csv --out out/sheets
    1 | nothing to draw
store ls in/stores
    0 | whole.staging staging 3 2 0 1 0 toy | late.staging staging 3 1 0 0 2 toy | not readable
store seal in/stores/whole --licence CC-BY-4.0 --citation Us
    0 in/stores/whole-1.0.0 | 3 clips of toy (2 ok, 1 failed), fingerprint
store ls in/stores --json
    0 | "failed": 1
store seal in/stores/late --licence MIT --allow-missing --store-version 2.0.0 --json
    0 in/stores/late-2.0.0 | "missing": 2
store inspect in/stores/whole
    0 | clips.failed | 3 x 2 | decoder.on_damage
store inspect in/stores/whole --json
    0 | "pooled": {{ "dtype": "float32", "shape": [ 3, 2 ] }}
store verify in/stores/whole
    0 | (digests): nothing wrong
store verify in/stores/whole --quick
store verify in/stores/whole --full --json
    0 | "problems": []
store diff in/stores/left in/stores/left
    0 | nothing differs
store diff in/stores/left in/stores/right --json
    3 | "arrays"
store diff in/stores/right in/stores/other
    3 | layer is
store merge in/stores/left in/stores/right --out out/both-json --json
    0 out/both-json-1.0.0
store merge in/stores/left in/stores/right --out out/both --store-version 1.1.0
    0 out/both-1.1.0 | 4 clips of toy (4 ok), fingerprint
store pack in/stores/left --out out/left.zip
    0 out/left.zip | MB, fingerprint
store pack in/stores/right --out out/right.zip --json
    0 | "bytes"
store unpack out/right.zip --out out/right-1.0.0 --json
store inspect in/packed.zip
    0 | clips.ok 179
store diff in/packed.zip in/films
    0 | nothing differs
store verify in/packed.zip
store inspect url/films-1.0.0
    0 | clips.ok 179
store verify url/packed.zip --full
store pull url/films-1.0.0 out/there-1.0.0
    0 out/there-1.0.0/bagit.txt
store verify out/left.zip --full
store unpack out/left.zip --out out/left-1.0.0
    0 out/left-1.0.0/bagit.txt | fingerprint
store pull in/frames-1.0.0 out/part-1.0.0 --arrays frames --clips in/two.csv
    0 out/part-1.0.0/fetch.txt | left out (fetch.txt)
store pull in/frames-1.0.0 out/whole-1.0.0 --json
    0 | "left": 0
store pull in/frames-1.0.0 out/part-1.0.0
    0 -out/part-1.0.0/fetch.txt | were here
store push in/stores/left out/pushed-1.0.0
    0 out/pushed-1.0.0 | fingerprint
store push in/stores/right out/pushed-right-1.0.0 --json
store export in/films out/json.h5 --to hdf5 --json
    0 | "clips": 179
store export in/films out/films.h5 --to hdf5
    0 out/films.h5 | 179 clips of descriptors; 1 without features left out
store export in/films out/films.h5ad --to h5ad --manifest in/more.csv
    0 out/films.h5ad | no labels for 150 clips
store import in/films.csv out/films.h5 out/back --from hdf5 --licence CC0-1.0 --allow-missing
    0 out/back-1.0.0 | missing: 1 of 180 clips have no features
store import in/films.csv out/films.h5ad out/again --from table --licence CC0-1.0 --allow-missing
store import in/films.csv in/rows.npy out/lab --from table --ids in/ids.txt {LAB}
    0 out/lab-1.0.0 | 180 clips of lab (180 ok)
store import in/films.csv in/rows.npy out/json --from table --ids in/ids.txt {LAB} --json
    0 | "ok": 180
store import in/films.csv in/npy out/npy --from npy --pattern {{clip_id}} {ALLOWED}
    0 | left out: 1 that belong to no clip of the manifest: stray
store import in/films.csv in/frames.csv out/each --from table {EACH} {LAB}
    0 out/each-1.0.0 | rows: a row is a frame | 'shown_ms' in milliseconds | 1 to 3 frames of 2 numbers
store card in/films --json
    0 | "croissant.json"
store card in/films
    0 | license: cc0-1.0 | fingerprint | @misc{{films-1.0.0,
store cite in/films
    0 | fingerprint | @misc{{films-1.0.0,
store cite in/films --json
    0 | "bibtex"
=store card in/films --out out/card
    0 out/card/README.md out/card/croissant.json
store rm out/json-1.0.0 --yes --json
    0 -out/json-1.0.0
store rm --sealed-stages in/npy --yes --json
    0 | "removed": []
store rm out/left-1.0.0 out/both-1.1.0 --yes
    0 -out/left-1.0.0 -out/both-1.1.0 | removed
store rm --sealed-stages in/stores --yes
    0 -in/stores/whole.staging in/stores/late.staging | late.staging: 2 of 3 clips are still to do
store rm --sealed-stages out --yes
    0 -out/videos.staging out/videos-1.0.0
weights verify in/video.mp4 --sha256 {"0" * 64}
    3 | these are other weights
weights check in/nothing
    1 | in/nothing
weights convert in/video.mp4 --out out/movenet.onnx
    1 | in/video.mp4
doctor out/store --json
    0,3 | "faults"
doctor --for laptop
    0,3 | extra sound
slurm init out/jobs --licence CC-BY-4.0 --sbatch partition=gpu --json
    0 out/jobs/array.sbatch out/jobs/submit.sh | "scripts"
slurm init out/jobs --licence CC-BY-4.0
    1 | array.sbatch
""",
    "zoo": f"""
=evaluate {PLANTED} --save linear --out out/run --html out/run.html --licence MIT
    0 out/run/linear.model out/run/metrics.csv out/run.html | 1 excluded: failed: the file is empty (0 bytes)
evaluate {CORPUS} --task calm_violent --model mlp --seeds 2 --out out/two
    0 out/two/seeds.csv | by movie, mean of 6
evaluate {PLANTED} --variables in/variables.csv --out out/staged
    0 out/staged/run.json | staging by cuts; left out movie, start_s, end_s
evaluate {CORPUS} --task calm_violent --model mlp --imbalance subsample --out out/mlp --json
    0 | "imbalance": "'subsample'"
evaluate in/films.csv url/films-1.0.0 --negative calm --positive violent --seen --model linear --out out/seen
    0 out/seen/run.json
evaluate in/films.csv in/films --task concept:Gun --model linear
    0 | Gun, present or not | run not kept
evaluate in/marked.csv in/frames:xclip --task levels --model linear --policy paper --json
    0 | "pool": "as stored" | 1 clip changed level
=compare out/run out/mlp --model linear --against mlp --out out/compared --html out/compared.html
    0 out/compared/compare.csv out/compared/compare.tex
compare out/two out/mlp
    0 | mean of 2 seeds
compare out/run out/run --model linear --against movie_prior --json
    0 | "n_movies": 6
""",
    "frames and fusions": f"""
evaluate in/marked.csv in/frames --task concept:Body --model attention --save attention --out out/attention
    0 | attention of all 4 movies kept in out/attention/attention.model | would make EN of
evaluate in/marked.csv in/marked --task concept:Body --model linear --texts in/texts --out out/zero
    0 out/zero/report.tex
evaluate in/marked.csv {BOTH} --task concept:Body --fuse mean --save linear --out out/fused
    0 out/fused/run.json | linear:xclip
predict out/fused/linear.model in/backbones --json
    0 | "clips"
explain out/fused/linear.model in/backbones --clip m0-01
    0 | modality contribution | base
model card out/fused/linear.model
    0 | vivit: pooled (as stored)
mobygaze in/marked.csv visual=in/marked --task concept:Body
    1 | annotators are compared where two or more labelled
predict out/attention/attention.model in/frames --out out/clips.csv --frames out/frames.csv
    0 out/frames.csv | 256 frames in
localise out/frames.csv in/segments.csv --positive S
    0 | annotator measure | clips without a boundary left out
localise out/frames.csv in/segments.csv --concept Body --json
    0 | "measures"
=model units in/frames --labels in/marked.csv --texts in/texts --units 8 --active 2 --out out/units
    0 out/units/units.npz out/units/units.csv -out/units.partial.npz | units go with a concept
model units in/frames:xclip --units 4 --active 1 --out out/few --json
    0 | "unexplained"
""",
    "films": f"""
=film score in/models/pcbm_lr.model in/m --out out/scored
    0 out/scored/film.json | pcbm_lr (calm_violent)
film score in/models/pcbm_lr.model in/m --films in/facts.csv --out out/facts --json
    0 out/facts/film.json | "title": "The M"
film score in/models/pcbm_lr.model in/alien --title Alien --out out/alien
    3 | Alien · no prediction: unlike every film | No rate: nothing of the film is like
=film next out/scored --n 4 --codebook {BOOK} --out out/next.csv
    0 | 4 windows of 1 film
film next out/scored --n 4 --blind --codebook {BOOK} --out out/blind.csv
    0 | 4 drawn at random
film rate out/scored in/truth.csv --json
    1 | no window judged blindly
film rate out/scored in/truth.csv --labels in/truth.csv
    1 | no window judged blindly
film compare out/scored --labels in/truth.csv
    3 | No group has a rate
=film compare out/scored --html out/groups.html
    3 out/groups.html | No group has a rate
film open none --no-browser
    1 | none
film open out/scored --film in/films.csv --codebook {BOOK} --no-browser
    1 | films.csv
=film learn out/scored {LEARN} --windows in/m --out out/learnt --html out/learnt.html
    0 out/learnt/pcbm_lr.model out/learnt/manifest.csv out/learnt/scored/film.json | before and after 2
=film report out/scored --out out/film.html --language fr
    0 out/film.html
=film export out/scored --as vtt --out out/film.vtt
    0 out/film.vtt | vtt: times are rounded to milliseconds
=film evaluate out/scored --truth in/truth.csv --collar 5 --out out/agreement --html out/agreement.html
    0 out/agreement.html
manifest import spans out/film.eaf --out out/eaf.csv
    1
film export out/scored --as eaf --out out/film.eaf
manifest import spans out/film.eaf --annotator AB --codebook {BOOK} --out out/eaf.csv
    3
film import out/film.eaf --into out/scored --codebook {BOOK} --json
    3 | "annotators": []
film import out/film.eaf --into out/scored --codebook {BOOK}
    3 | no annotation of these films
manifest import spans out/next.csv --codebook {BOOK} --out out/judged-json.csv --json
    3
manifest import spans out/next.csv --codebook {BOOK} --out out/judged.csv
    3 | 4 left out: without a level
""",
    "audits": f"""
=audit eat {EAT} --published "CLIP RN50" --out out/eat.csv --figure out/eat.svg
    0 out/eat.csv out/eat.json out/eat.md out/eat.svg | emotion_angry_high
audit eat {EAT} --items in/own.csv --tests in/tests.json --out out/own.csv
    0 | mine 2 2
audit eat prompts --out out/prompts-json.csv --json
audit eat prompts --out out/code.csv
    0 out/code.csv | 240 prompts
audit eat prompts --variant paper --out out/paper.csv
=audit saliency {MAPS} --out out/saliency.csv --figure out/saliency.svg
    0 out/saliency.md
audit saliency {MAPS} --out out/laid.csv --overlays out/laid --pictures in/pictures.csv
    0 out/laid/0000-i1.png out/laid/0001-i2.png
=audit gender-score {GENDERS} --out out/gs.csv --figure out/gs.svg
    0 out/gs.md | left out c3: no prior for 'a dog' | Share of man by share
audit gender-score {SCORED} --texts in/said --out out/said.csv
    0 out/said.csv
audit gender-score {GENDERS} --mode ge --published Vilbert --out out/ge.csv
    0 | published 0.7656 | left out c3: names no gender and has no mask
audit gender-score {GENDERS} --captions in/many.csv --out out/many.csv
    0 | the first 20 of 121 rows | left out 120, such as n0
audit gender-score {GENDERS} --mode ge --list-texts out/list.csv
    0 out/list.csv
audit gender-score {GENDERS} --mode ge --sheet out/sheet.png --pictures in/pictures.csv --out out/drawn.csv
    0 out/sheet.png out/drawn.csv
=audit words {WORDY} --out out/w.csv --figure out/w.svg
    0 out/w.json
=audit erase --images in/frames-1.0.0 --items in/sexes.csv --attribute sex --films movie --out out/erased.csv
    0 out/erased.csv | a linear probe of sex has a balanced accuracy of
=audit groups --items in/rated.csv --outcome r1 --by item_id --out out/groups.csv
    0 out/groups.csv | the estimate is lowest for
=audit alpha --ratings in/rated.csv --pairs --out out/alpha.csv --figure out/alpha.pdf --html out/alpha.html
    0 out/alpha.html
=audit cooc {LISTED} --out out/c.csv --figure out/c.svg
    0 out/c.csv
audit objects --objects-list in/objects.txt --list-texts out/object-texts.csv
    0 out/object-texts.csv | 2 texts kept in
task mediaeval15 labels in/mediaeval15/clips.csv --out out/labels-json.csv --json
task mediaeval15 labels in/mediaeval15/clips.csv --out out/labels.csv
    0 | 60 clips kept in | 0 left out
manifest import mediaeval15 in/mediaeval15 --out out/m15.csv
=task mediaeval15 train out/m15.csv in/m15 --subtask violence --run a --out out/runs
    0 out/runs/violence-a.trec | 29 test clips, 1 missing | excluded ACCEDE00059.mp4: failed
task mediaeval15 score --truth out/m15.csv --run out/runs/violence-a.trec --out out/scores
    0 out/scores/scores.csv out/scores/scores.png | 1 of 30 judged clips are missing from the run
task mediaeval15 check out/runs --truth out/m15.csv --json
    0 | 1 of 30 test clips are missing
task mediaeval15 train out/m15.csv in/m15-xclip --subtask affect --run b --external --out out/more
    0 out/more/affect-b.csv
task mediaeval15 check out/more --truth out/m15.csv
    3 | no run without external data
""",
    "papers": f"""
paper claims --out out/claims
    0 out/claims
paper all in/marked.csv --only figure2 --out out/figure2 --html out/figure2.html
    0 out/figure2/figure2.pdf out/figure2/figure2.tex out/figure2.html | label policy raw, 64 clips
paper all {PUBLISHED} --only figure3 --out out/figure3
    0 out/figure3
paper figure4 in/segments.csv --movie m0 --onto in/scenes.csv --out out/figure4
    0 out/figure4
paper all {RELEASED} --only figure5 --protocol strict --out out/figure5 --json
    0 | "name": "figure5-strict" | "label_policy": "paper"
paper all {PUBLISHED} --only figure6,figure2 --out out/figure6
    0 out/figure6/index.md out/figure6/figure2.csv out/figure6/figure6-paper.csv | out/figure6/index.md
paper all {PUBLISHED} --only table2 --out out/table2
    0 out/table2
paper all {PUBLISHED} --only table4 --out out/table4
    0 out/table4
""",
    "networks": f"""
weights fetch lab/net@v1
    0 | file model.safetensors
train xclip-lsmdc --clip in/lsmdc-clip {LSMDC} --device cpu --out out/lsmdc
    0 out/lsmdc
manifest import images in/stills --out in/stills.csv
=gradcam in/stills.csv --prompts in/prompts.txt --weights in/clip --out out/maps.zarr
    0 out/maps.zarr
=lm in/shoes.csv --model in/gpt2 --device cpu --out out/lm.csv
    0 out/lm.csv
search in/films --like f0-14 --top 3
    0 | clips ranked by descriptors
store duplicates in/films
    1 | has no frames of signature
search in/xclip dog --weights in/xclip --device cpu
    0 | 4 clips ranked by xclip
extract in/drawn.csv out/drawn --backbone clip {TINY}
    0 out/drawn-1.0.0 | 40 ok
extract in/drawn.csv out/described --workers 1 --licence CC0-1.0
evaluate in/drawn.csv out/described --task calm_violent --model linear --save linear --out out/drawn-run
film run in/drawn/f0.mp4 --model out/drawn-run/linear.model --window 1 --shots none --out in/ran --workers 1
    0,3 in/ran/report.html in/ran/film-run.json | The page:
film run in/drawn/f0.mp4 --model out/drawn-run/linear.model --window 1 --variables --out in/staged --workers 1
    0,3 in/staged/variables.csv in/staged/scored/variables.csv | film variables
film variables in/drawn/f0.mp4 in/drawn/f1.mp4 --windows in/drawn.csv --out out/variables.csv
    0 out/variables.csv | left out 20 of 40 windows | 20 windows; cuts, black
paper all in/published.csv in/marked --protocol paper --out out/published
    0 out/published/index.md
""",
}
"""Rows of commands by group."""

COMMAND_TABLES |= {path.stem: path.read_text(encoding="utf-8") for path in sorted(ROWS.glob("*.txt"))}
