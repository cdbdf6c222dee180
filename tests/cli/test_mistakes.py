"""What users are told who make a mistake: the words of messages stand here, and in no other test of commands.

A line is `CODE COMMAND`, below it what stderr must hold. Nothing is made, and nothing printed on stdout.
"""

import re
import shutil

import pytest

from tests.cli.table import GENDERS, RELEASED, stand_in
from tests.private import MARK

TABLE = "--from table --backbone lab --licence MIT"
HEADS = "--from npy --backbone b --licence MIT"
DRAWN = f"--mode ge {GENDERS} --out out/ge.csv"
MISTAKES = f"""
2 nonsense
    No such command 'nonsense'
2 stoer ls
    No such command 'stoer'. Did you mean 'store'?
2 store verify
    Missing argument
2 store seal in/stores/whole --licence --store-version 1.0.1
    '--licence' requires an argument, not --store-version
1 store inspect in/stores
    in/stores: not a store, but stores are in it; name one: broken-1.0.0
1 store inspect .
    not a store
1 store inspect /
    /: not a store
1 store seal / --licence MIT
    /: expected the name of a store
1 store seal . --licence MIT
    .: expected the name of a store
1 extract in/films.csv .
    .: expected the name of a store
1 store ls nowhere
    nowhere: no such folder; name the one that holds stores: obygaze store ls FOLDER
2 film import in/truth.csv --into in --blind --in-sight
    --blind and --in-sight exclude each other
2 store verify in/films --quick --full
    --quick or --full, not both
2 store seal in/stores/whole
    Missing option '--licence'
1 store seal in/stores/late --licence MIT
    late.staging: 2 of 3 clips are still to do, the first is b
1 store seal in/films-1.0.0 --licence MIT
    films-1.0.0 is sealed; the name is
2 manifest import spans in/a.eaf --tier levels --out out/a.csv
    expected NAME=levels, NAME=concepts or NAME=labels
2 manifest import spans in/a.eaf --tier x=levels --tier x=concepts --out out/a.csv
    'x' is levels or concepts, not both
2 manifest import spans in/ratings.csv --column Stufe --out out/a.csv
    expected NAME=HEADING
1 manifest import spans in/ratings.csv --column levl=Stufe --out out/a.csv
    did you mean 'level'
1 manifest import spans in/ratings.csv --out out/a.csv
    --column start_s=Anfang --column end_s=Ende --column level=Stufe
1 codebook guess in/wide.csv --out out/a.toml
    --column level=AB
1 manifest rank in/scaled.csv in/one-pair.csv --scale valence --out out/r.csv
    line 2, column chosen: 'm0-02' is neither of the two clips: write
2 manifest rank in/scaled.csv --scale valence --ask --master w0 --out out/r.csv
    with --ask all workers count the same
1 manifest rank in/scaled.csv --scale valence --out out/r.csv
    there is no comparison to rank by
1 manifest rank in/scaled.csv in/pairs.csv --scale fear --out out/r.csv
    fear
1 manifest assign in/marked.csv --annotator AB --each 2 --out out/round.csv
    2 of 1 annotator (AB): name each once
1 manifest progress in/segments.csv in/segments.csv
    order '' is no number of a film
1 manifest alttest in/segments.csv
    no annotator is known as a machine: name one with --machine
1 manifest alttest in/segments.csv --machine zoe
    no annotator 'zoe': there are ann, bea
1 manifest alttest in/films.csv --machine zoe
    no annotator 'zoe': there are none
1 manifest alttest in/answered.csv --machine ann --machine bea
    ann is compared with two annotators or more
2 film score in/m --out out/x
    give one or more MODEL files, then the STORE
1 film score in/m in/models/linear.model --out out/x
    the order is MODEL STORE..., the model first
1 film score in/models/linear.model in/m --out out/x --films in/years.csv
    line 2, column year: 'soon' is no year
2 film score in/models/linear.model in/m --out out/x --flags in/years.csv
    --flags replaces flags of shots: give --shots too
1 film evaluate in/scored --truth in/more.csv --out out/x
    no scored film is annotated: the films are m; the manifest has g0, f0
1 film next in/scored --out out/x.csv
    codebook 'violence' is not built in: give its file
1 film variables in/video.mp4 --windows in/films.csv --out out/x.csv
    in/films.csv has no window of this file or movie
2 film variables in/video.mp4 --out no/x.csv
    no: no such folder to write x.csv in
1 film variables in/video.mp4 --out in/video.mp4 --force
    in/video.mp4 is an input too
1 film variables in/video.mp4 --people onnx:in/films.csv --out in/films.csv --force
    in/films.csv is an input too
2 film run in/video.mp4 --model in/models/linear.model --flags in/years.csv --shots none --out out/x
    --flags replaces flags of shots: there are none with --shots none
2 film run in/video.mp4 --model in/models/linear.model --sound --out out/x
    --sound is for --variables
2 film run in/video.mp4 --model in/models/linear.model --out in/stills
    in/stills holds something else: choose another --out
1 store merge in/stores/left in/stores/other --out out/merged
    features of toy: provenance differs in layer
1 store merge in/stores/mit in/stores/cc --out out/merged
    licence differs (CC0-1.0; MIT): choose the result's (--licence)
1 store rm in/stores --yes
    neither a sealed store nor a stage
1 store rm in/stores/link --yes
    is a link
2 store rm
    Missing argument
1 store rm --sealed-stages nowhere --yes
    nowhere: no such folder
2 store rm in/stores/whole.staging
    nothing was removed: give --yes
1 store export in/films in/films.csv --to hdf5
    in/films.csv: is there already
2 store export in/backbones out/films.h5 --to hdf5
    --backbone: choose one of
1 store card in/films --licence MIT
    sealed under CC0-1.0, not MIT
1 store card in/films --out in/films-1.0.0/data
    inside a sealed store, which never changes
1 manifest stats in/films.csv --out in/films-1.0.0/run
    inside a sealed store, which never changes
1 evaluate in/marked.csv in/films --task hn_s --out in/films-1.0.0/run
    inside a sealed store, which never changes
1 store pack in/packed.zip
    in/packed.zip: a packed store, and its folder is needed
1 store push in/packed.zip out/b
    obygaze store unpack 'in/packed.zip'
1 store unpack in/films-1.0.0
    in/films-1.0.0: a folder; expected a zip
1 store unpack in/foreign.zip
    in/foreign.zip:
1 store push in/films https://example.org/films
    nothing can be pushed over HTTP
2 store pull in/films https://example.org/films
    is a URL, and this needs a path on this machine
2 store import in/films.csv in/npy x --from npy --licence MIT
    say what the features are called: --backbone
2 store import in/films.csv in/npy x --from npy --backbone "my net" --licence MIT
    Invalid value for --backbone: 'my net': expected at most 100 letters
2 store import in/films.csv in/npy x {HEADS} --pattern {{clip}}
    {{clip}}: expected one of clip_id, movie, video
2 store import in/films.csv in/npy x {HEADS} --declared in/list.json
    expected one JSON object of provenance fields
2 store import in/films.csv in/npy x {HEADS} --ids in/ids.txt
    --ids is for --from table
1 store import in/films.csv in/npy x {HEADS} --pattern {{clip_id}}
    178 of 180 clips have no features to import, the first is f0-14
1 store import in/segments.csv in/npy x {HEADS} --pattern {{clip_id}}
    none of its 3 names is a clip's: it has 'f0-00', and by --pattern
1 store import in/films.csv in/npy x {HEADS} --pattern {{clip_id}} --times shown_ms --allow-missing
    f0-00.npy: has no shown_ms (--times)
2 store import in/films.csv in/frames.csv x {TABLE} --times shown_ms
    --times names a column of a table with a row for each frame (--array frames)
1 store import in/films.csv in/frames.csv x {TABLE} --columns f?
    id 'f0-07' is there twice (row 3); ids are unique, unless a row is a frame (--array frames)
2 store import in/films.csv in/frames.csv x {TABLE} --columns f? --array frames --axes DT
    in in/frames.csv a row is a frame, so its axes are TD
1 extract in/films.csv x --per-second 2 --n 4 --licence MIT
    a number of frames a clip (--n), or frames a second (--per-second), not both
2 weights verify in/video.mp4 --sha256 12
    '12' is not 64 hexadecimal digits
1 weights fetch descriptors
    'descriptors': expected a backbone with weights on the hub (
1 frames in/empty.mp4
    in/empty.mp4: the file is empty (0 bytes)
1 frames in/videos
    in/videos: this is a directory, not a video file
1 frames in/video.mp4 --indices 32
    in/video.mp4: frame 32 is not among the 32 from 0 to 31
2 frames in/video.mp4 --npz no/a.npz
    no: no such folder to write
2 frames in/video.mp4 --n 3 --fps 2
    --n and --fps cannot be combined
2 frames in/video.mp4 --fps 0
    x>0
2 frames in/video.mp4 --start 1:75
    '--start': '1:75' is no time
2 frames in/video.mp4 --sheet out/sheet.jpg
    sheet.jpg: name it .png
1 frames in/video.mp4 --npz in/kept.npz
    in/kept.npz exists already: give --force to replace it, or choose another name
1 frames in/video.mp4 --npz in/video.mp4 --force
    is an input too
1 extract in/films.csv out/films --store-version 2
    store version '2': expected three numbers
1 extract in/films.csv in/empty.csv/films
    is a file
2 extract in/films.csv store --shard 4/4
    '4/4' is not i/n
2 extract in/films.csv store --shard 0/0
    '0/0' is not i/n
2 extract in/films.csv store --shard a/4
    'a/4' is not i/n
2 extract in/films.csv store --shard 0/b
    '0/b' is not i/n
2 extract in/films.csv store --shard 1
    '1' is not i/n
1 extract in/video.mp4 out/films
    obygaze manifest import folder 'in' --out video.csv
1 extract in/tape.MPG out/films
    obygaze manifest import folder 'in' --out tape.csv
1 extract in/texts.csv out/prompts
    texts.csv is a list of texts, and descriptors reads frames
1 extract in/prompts.txt out/prompts
    give --backbone clip-text or --backbone sentence
1 extract in/items.csv out/films
    make a manifest of it with 'obygaze manifest import'
1 manifest import folder in/videos --out in/segments.csv
    in/segments.csv is there already; choose another --out, or replace it with --force
1 manifest import spans in/codes.csv --videos in/videos --out out/codes.csv
    '00:00:01:00' ends in frames: write hh:mm:ss.ms, or give their rate where there is a --rate
1 manifest import folder in/videos --codebook mobygase --out out/a.csv
    mobygase: neither a file nor a built-in codebook (did you mean 'mobygaze'?)
1 manifest import folder in/videos --out in/fights-2.csv --force
    in/fights-2.codebook.toml would be taken for the codebook of fights-2.csv, and it is another one
1 manifest import folder in/videos --codebook in/violence.codebook.toml --out in/fights-2.csv
    in/fights-2.codebook.toml would be taken for the codebook of fights-2.csv, and it is another one
1 manifest inspect in/oby.csv
    make a manifest of it with 'obygaze manifest import' (corpora: obygaze12,
1 manifest inspect in/codes.csv
    annotations, subtitles and tables: spans FILE
2 manifest project in/segments.csv --out out/out.csv
    either --onto CLIPS or --window SECONDS
1 manifest agreement in/marked.csv
    nothing to compare
2 manifest stats in/segments.csv --by annotator --sets
    --by and --sets cannot be combined
2 manifest stats in/segments.csv --out out/x
    --out goes with --by or --sets or --sweep
2 manifest stats in/segments.csv --sweep 0.1;0.2
    numbers joined by commas
1 manifest stats in/segments.csv --sweep 20
    threshold 20.0: expected a share
1 manifest stats in/segments.csv --by genre
    no column 'genre' to group clips by: there are annotator, movie
1 manifest stats in/films.csv --policy paper
    label policy paper: the codebook 'violence' has raw alone
2 manifest import film in/video.mp4 --out out/a.csv
    give one of --window SECONDS, --model MODEL or --store STORE
1 manifest sheets in/marked.csv --concept Bodyy --out out/s
    unknown concept 'Bodyy'
2 manifest sheets in/marked.csv --concept Body --predictions in/p.csv --out out/s
    different sheets
1 codebook check in/violet.toml
    violet.toml: codebook 'violet': tasks.t: positive: unknown level 'violet' (did you mean 'violent'?)
1 codebook check in/empty.toml
    empty.toml: the file is empty
1 codebook show nowhere.csv
    nowhere.csv: neither a file nor a built-in codebook
2 codebook init --out out/mine.txt
    should end in .toml
2 folds in/marked.csv --task hn_s --protocol paper --policy raw
    --policy
2 folds in/marked.csv --task hn_s --movies
    --movies
2 folds in/marked.csv --task hn_s --test concept:Body
    a model of hn_s can't be tested on concept:Body
1 folds in/marked.csv --task hn_s --protocol paper
    no folds in a column fold_hn_s
1 folds in/published.csv --protocol paper --movies --task concept:Body
    --movies pairs films
1 folds in/published.csv --protocol paper --task concept:Body --against HN
    tells a concept's clips from EN
1 folds in/published.csv --protocol paper --task levels
    has the tasks en_s, hn_s, enhn_s, and no levels
1 folds in/marked.csv
    expected one of en_s, hn_s, enhn_s, concept:NAME, levels
2 evaluate in/films-1.0.0 in/films.csv --task calm_violent
    the order is MANIFEST STORE: in/films-1.0.0 is no manifest
2 evaluate in/films in/films.csv --task calm_violent
    the order is MANIFEST STORE: in/films is no manifest
2 evaluate https://example.org/films-1.0.0 in/films.csv --task calm_violent
    https://example.org/films-1.0.0 is no manifest
2 evaluate https://example.org/films.csv in/films --task calm_violent
    https://example.org/films.csv is no manifest, which must be a file on this machine
1 manifest inspect https://example.org/films.csv
    https://example.org/films.csv: a manifest is read from a file on this machine: download it first
2 evaluate in/films.csv in/films.csv --task calm_violent
    the order is MANIFEST STORE: in/films.csv is no store
1 evaluate nothing.csv in/marked --task hn_s --out in/marked.csv
    in/marked.csv
1 evaluate in/marked.csv in/marked --task en_hn
    en_hn
1 evaluate nothing.csv in/marked --task hn_s
    nothing.csv: No such file
1 evaluate {RELEASED} --task hn_s --model lnear
    lnear
1 evaluate {RELEASED} --task hn_s --model linear,mlp
    give each model a --model of its own
1 evaluate {RELEASED} --task hn_s --negative HN --positive S
    --task names a task and --negative and --positive make one
2 evaluate {RELEASED} --task hn_s --imbalance smote
    'none', 'weights', 'subsample'
2 evaluate in/marked.csv in/backbones:vivit in/backbones:xclip --task hn_s
    several stores: say how, as in --fuse late
2 evaluate in/marked.csv in/backbones:vivit --task hn_s --fuse late
    --fuse: give two STORE:BACKBONE
2 evaluate in/marked.csv in/frames in/backbones:xclip --task hn_s --fuse concepts --model linear
    --model other than pcbm_time: not with --fuse concepts
1 evaluate in/marked.csv visual=in/frames heard=in/backbones:xclip --task hn_s --fuse concepts
    modality heard: no concept that is heard is there and absent in 3 movies
1 evaluate in/marked.csv in/frames in/backbones:xclip --task hn_s --fuse late --save mlp --model mlp --out x
    linear alone can be kept
1 evaluate in/marked.csv in/backbones:vivit in/backbones:xclip --task hn_s --fuse late --model attention
    model attention reads frames: models of vectors alone are fused
2 mobygaze in/marked.csv in/marked
    give each store a modality of its own
1 evaluate in/marked.csv in/marked --task concept:Body --experts each
    annotators are compared where two or more labelled
1 evaluate in/marked.csv in/backbones --task hn_s --model linear
    has several backbones (vivit, xclip): name one, STORE:BACKBONE
1 evaluate in/ne.csv in/marked --task hn_s
    none of the 4 clips of the manifest to use has features in store marked
1 evaluate in/two.csv in/marked --negative EN --positive S
    leaving one movie out needs at least 3 movies
1 evaluate in/marked.csv http://127.0.0.1:9/films-1.0.0 --task hn_s
    no server answers at 127.0.0.1:9
1 compare in/nothing in/nothing
    in/nothing
1 predict in/more.csv in/more
    more.csv: not a whole model file
1 predict nothing.model in/more
    nothing.model: No such file or directory
1 predict in/more in/models/linear.model
    linear.model a file: the order is MODEL STORE..., the model first
1 explain in/models/pcbm_lr.model in/more --clip g0-7
    no clip 'g0-7' in more: did you mean 'g0-
1 explain in/models/linear.model in/more --clip g0-07
    model linear decides by no concepts
1 explain in/models/pcbm_lr.model in/more --clip g0-07 --set gun=1
    unknown concept 'gun' (did you mean 'Gun'?)
1 explain in/models/pcbm_lr.model in/more --clip g0-07 --set Gun=95
    --set Gun=95: expected CONCEPT=QUANTILE
2 model units in/films --out out/units
    --features frames: descriptors has pooled here
1 model units in/frames --units 3 --out out/units
    16 active units of 3
1 model card in/more-1.0.0
    is a folder, a pipe or a device, not the file of a model
1 audit eat --images in/sobem --texts in/texts --text-items in/prompts.csv --out out/eat.csv
    '{"xclip sha256:0123"}'
2 audit gender-score {GENDERS} --out out/g.txt
    should end in .csv
2 audit alpha --ratings in/rated.csv --out out/a.csv --figure out/a.gif
    should end in .pdf, .png or .svg
1 audit alpha --ratings in/rated.csv --out in/films.csv
    in/films.csv exists already: give --force to replace it, or choose another name
1 audit saliency --maps in/maps.zarr --roi in/roi.csv --out out/m.csv --overlays out/laid --pictures in/no.csv
    no picture of i1
2 audit gender-score {DRAWN} --sheet out/sheet.png
    --pictures
1 audit gender-score {DRAWN} --sheet out/sheet.png --pictures in/no.csv
    no picture of i
1 audit gender-score {DRAWN} --sheet out/sheet.png --pictures in/torn.csv
    i2.jpg
2 audit gender-score {GENDERS} --mode gs --out out/ge.csv --sheet out/s.png --pictures in/pictures.csv
    --mode ge
1 audit objects --objects-list in/objects.txt --images in/sobem --texts in/prompted --out out/o.csv
    in/prompted-1.0.0, group toy does not carry its texts
1 audit cooc --captions in/captions.csv --objects-list in/captions.csv --out out/c.csv
    as a table; expected one name per line
1 paper all in/films.csv in/films --only table2 --out out/t
    this table or figure
1 paper all {RELEASED} --only table2 --out out/t --protocol paper
    no folds in a column
1 paper all {RELEASED} in/marked --only table2 --protocol strict --out out/t
    given twice
1 paper all in/films.csv in/films --out out/t --policy raw
    this manifest's codebook is 'violence'
1 paper all in/marked.csv --only figure2 --out in/mine --force
    in/mine holds what is not an output of ours (thesis.txt is not in contents.json)
1 paper all in/marked.csv --only figure2 --out in/films.csv
    is a file
2 paper all in/marked.csv --only figure2,table2 --out out/t
    only figure2 needs none
2 paper all {RELEASED} --only table3 --out out/t
    'table3' is not one of figure2, table2
2 task mediaeval15 train in/m15.csv in/m15 --subtask fear --run a
    Invalid value for '--subtask'
1 task mediaeval15 train in/m15.csv in/m15 --subtask affect --run "a b"
    'a b' is no name for a run
1 task mediaeval15 train in/m15.csv in/m15-xclip --subtask affect --run a
    pretrained weights, which have seen external data: mark the run with --external
1 task mediaeval15 train in/leak.csv in/m15-xclip --subtask affect --run a --external
    the split leaks: movie 'film0' has clips in dev and in test
"""


@pytest.fixture(scope="module")
def folder_of_inputs(inputs, tmp_path_factory):
    """A folder of marked name with the inputs in `in`, for all mistakes, none of which changes it."""
    folder = tmp_path_factory.mktemp("mistakes") / MARK
    shutil.copytree(inputs, folder / "in", symlinks=True)
    return folder


CODE_COMMAND_AND_MESSAGE = re.findall(r"^(\d) (.*)\n +(.*)\n", MISTAKES, re.MULTILINE)


@pytest.mark.long
@pytest.mark.parametrize(
    ("code", "command", "message"),
    CODE_COMMAND_AND_MESSAGE,
    ids=[command for _, command, _ in CODE_COMMAND_AND_MESSAGE],
)
def test_a_mistake_ends_in_a_message_without_a_traceback_and_makes_no_file(
    folder_of_inputs, run, monkeypatch, code, command, message
):
    """The user reads on stderr what is wrong and what to type; nothing goes to stdout.

    Errors of ours end with the code 1 and begin with "obygaze: error: "; words that the command line does
    not know end with 2 and have a message of click. Such a mistake is "store ls nowhere", which ends with 1
    and "nowhere: no such folder".
    """
    current_folder = stand_in(folder_of_inputs, monkeypatch)
    files_before = sorted(current_folder.rglob("*"))

    ended = run(command, current_folder)

    assert ended.exit_code == int(code), ended.err
    assert ended.out == ""
    assert message in ended.err
    assert "Traceback" not in ended.err
    is_of_click = ended.exit_code == 2
    assert "obygaze: error: " in ended.err or is_of_click
    files_after = sorted(current_folder.rglob("*"))
    assert files_after == files_before


def test_every_line_of_the_table_of_mistakes_is_read():
    """A mistake takes two lines: its code and command, and below them the message."""
    n_lines = len(MISTAKES.strip().splitlines())
    n_mistakes = len(CODE_COMMAND_AND_MESSAGE)

    assert n_lines == 2 * n_mistakes
