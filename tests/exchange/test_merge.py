"""Combining stores and growing one: nothing is mixed that must not be; equal bytes, as if at once."""

import numpy as np
import pytest

from obygaze_features.errors import StoreError
from obygaze_features.exchange.merge import merge
from obygaze_features.store import Stage, open_store, staging_path, verify
from obygaze_features.store.format import CROISSANT, DIGESTS, TABLE
from obygaze_features.store.provenance import validate_licence
from obygaze_features.store.testing import seal_arrays

from ..command import obygaze
from ..store.hostile_stores import resealed
from ..store.toy_stores import (
    CORPUS,
    bytes_of_files,
    commit_clips,
    group,
    make_sealed_store,
    plan,
    ragged_group,
    result,
    seal_stage_of,
    status_of,
)

N_CLIPS = 20


def seal_part(tmp_path, name, rows, *, change=None, corpus=CORPUS, groups=None, **settings):
    """Seal a store of the planned clips at the places `rows`; `change` changes what was extracted."""
    kinds = groups or [group()]
    clips = [clip for position, clip in enumerate(plan(N_CLIPS)) if position in rows]
    stage = Stage.open(staging_path(tmp_path / name), clips, kinds, corpus)
    with stage.writer() as writer:
        for clip in clips:
            features = result(clip.clip_id, kinds, status_of(clip.clip_id))
            writer.commit([change(features) if change else features])
    about = {"licence": "CC-BY-4.0", "citation": "Nobody, 2026"} | settings
    return open_store(seal_stage_of(tmp_path / name, **about))


def assert_not_merged(stores, tmp_path, match, **settings):
    """Assert that a merge is refused in one line that matches, and leaves no store."""
    with pytest.raises(StoreError, match=match) as caught:
        merge(stores, tmp_path / "merged", **settings)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "merged-1.0.0").exists()


@pytest.mark.parametrize(
    ("other_film", "is_merged"),
    [("\u0421asablanca", False), ("casablanca", False), ("Psycho", True)],
    ids=["a Cyrillic letter", "small letters", "another film"],
)
def test_stores_whose_films_have_confusable_names_are_not_merged(tmp_path, other_film, is_merged):
    """One store has a clip of "Casablanca". Another spelling is likely the same film.

    Its clips would count as two films in cross-validation, where a film must not be trained and tested on.
    """
    vectors = {"net": {"pooled": np.zeros((1, 4), np.float32)}}
    stores = [
        open_store(seal_arrays(tmp_path / "a", {"a": "Casablanca"}, vectors)),
        open_store(seal_arrays(tmp_path / "b", {"b": other_film}, vectors)),
    ]

    if is_merged:
        assert len(open_store(merge(stores, tmp_path / "merged")).clips) == 2
    else:
        assert_not_merged(stores, tmp_path, "are one name")


@pytest.fixture(params=[0, 3], ids=["without common clips", "with three common clips"])
def two_parts(request, tmp_path, fixed_or_ragged_group):
    """Two stores that have all planned clips together."""
    return [
        seal_part(tmp_path, "a", range(8 + request.param), groups=[fixed_or_ragged_group]),
        seal_part(tmp_path, "b", range(8, N_CLIPS), groups=[fixed_or_ragged_group]),
    ]


def files_that_differ(store, other):
    """Return the names of the data files whose bytes differ in two stores; both must have the same names."""
    files, other_files = bytes_of_files(store / "data"), bytes_of_files(other / "data")
    assert files.keys() == other_files.keys()
    return {name for name in files if files[name] != other_files[name]}


NAMES_THE_PARENTS = "features.zarr/zarr.json"
"""The file of a store that says of which stores it was merged."""


def test_a_merged_store_equals_one_sealed_at_once_but_for_the_names_of_its_parents(
    two_parts, tmp_path, fixed_or_ragged_group
):
    """Two stores have 20 clips together, with or without three in common, and are merged into one.

    Of its data files one alone, which names the parents, differs from a store with the same clips that was
    sealed at once.
    """
    at_once = make_sealed_store(tmp_path, 20, [fixed_or_ragged_group])

    merged = merge(two_parts, tmp_path / "merged")

    assert not (tmp_path / "merged-1.0.0.merging").exists()
    assert files_that_differ(merged, at_once) == {NAMES_THE_PARENTS}
    assert (merged / CROISSANT).read_bytes() == (at_once / CROISSANT).read_bytes()
    assert verify(merged, "full").ok


def test_a_merged_store_and_its_readme_name_its_parents_by_their_fingerprints(two_parts, tmp_path):
    """The first of the two merged stores is the `parent`, and the other is in `merged_with`."""
    first, second = two_parts

    merged = merge(two_parts, tmp_path / "merged")

    attributes = open_store(merged).attributes
    assert attributes["parent"] == first.fingerprint
    assert attributes["merged_with"] == [second.fingerprint]
    readme = (merged / "README.md").read_text(encoding="utf-8")
    assert first.fingerprint in readme
    assert second.fingerprint in readme


@pytest.mark.long
def test_a_merge_that_was_interrupted_leaves_nothing_and_can_be_done_again(tmp_path, fixed_or_ragged_group):
    """Three stores have every third clip each. Their merge is stopped by Ctrl-C at its second step."""
    stores = [
        seal_part(tmp_path, "a", range(0, N_CLIPS, 3), groups=[fixed_or_ragged_group]),
        seal_part(tmp_path, "b", range(1, N_CLIPS, 3), groups=[fixed_or_ragged_group]),
        seal_part(tmp_path, "c", range(2, N_CLIPS, 3), groups=[fixed_or_ragged_group]),
    ]
    undisturbed = merge(stores, tmp_path / "undisturbed")

    steps = []

    def interrupt_second_step(n_done, _total):
        steps.append(n_done)
        if len(steps) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        merge(stores, tmp_path / "interrupted", progress=interrupt_second_step)
    assert not (tmp_path / "interrupted-1.0.0.merging").exists()

    merged = merge(stores, tmp_path / "interrupted")
    assert open_store(merged).fingerprint == open_store(undisturbed).fingerprint


def leave_a_killed_merge(place, fixed_or_ragged_group):
    """Leave what a merge leaves when it is killed, with another value in its first clip."""
    stage = Stage.open(place / "part/stage", plan(N_CLIPS), [fixed_or_ragged_group], CORPUS)
    first_clip = result(plan(N_CLIPS)[0].clip_id, [fixed_or_ragged_group])
    first_clip.groups["toy"].arrays["pooled"][0] += 1
    with stage.writer() as writer:
        writer.commit([first_clip])


def test_a_merge_after_a_killed_one_takes_the_values_of_the_stores(tmp_path, fixed_or_ragged_group):
    """The merge that was killed had another value in its first clip, which must not get into the store."""
    stores = [
        seal_part(tmp_path, "a", range(8), groups=[fixed_or_ragged_group]),
        seal_part(tmp_path, "b", range(8, N_CLIPS), groups=[fixed_or_ragged_group]),
    ]
    undisturbed = merge(stores, tmp_path / "undisturbed")

    leave_a_killed_merge(tmp_path / "merged-1.0.0.merging", fixed_or_ragged_group)
    merged = merge(stores, tmp_path / "merged")

    assert open_store(merged).fingerprint == open_store(undisturbed).fingerprint


def test_contacts_and_licences_of_merged_stores_are_joined(tmp_path):
    """Whoever uses the merged store must obey both licences. Commits that differ cannot both be named.

    The repository of the weights (`hub`) is the same for both.
    """
    group_of_first = group(contact="b@b", licence="MIT", commit="1" * 40)
    group_of_second = group(contact="a@a", licence="CC0-1.0", commit=None)
    first = seal_part(tmp_path, "a", range(8), groups=[group_of_first])
    second = seal_part(tmp_path, "b", range(8, N_CLIPS), groups=[group_of_second])

    merged = open_store(merge([first, second], tmp_path / "merged"))

    joined = merged["toy"].provenance
    assert joined["contact"] == "a@a; b@b"
    assert joined["licence"] == "CC0-1.0 AND MIT"
    assert joined["commit"] is None
    assert joined["hub"] == first["toy"].provenance["hub"]


def test_a_choice_of_licences_stays_one_where_another_licence_joins(tmp_path):
    """The first features are under MIT or ISC, whichever one likes, and the second ones under CC0-1.0.

    "CC0-1.0 AND MIT OR ISC" would allow ISC alone, as AND binds more.
    """
    first = seal_part(tmp_path, "a", range(8), groups=[group(licence="MIT OR ISC")])
    second = seal_part(tmp_path, "b", range(8, N_CLIPS), groups=[group(licence="CC0-1.0")])

    merged = open_store(merge([first, second], tmp_path / "merged"))

    assert merged["toy"].provenance["licence"] == "CC0-1.0 AND ISC OR CC0-1.0 AND MIT"


@pytest.mark.parametrize(
    ("first", "second", "joined"),
    [
        ("MIT", "NOASSERTION", "NOASSERTION"),
        (
            "(MIT OR ISC) AND Zlib",
            "(Apache-2.0 OR BSD-3-Clause) AND X11",
            "((Apache-2.0 OR BSD-3-Clause) AND X11) AND ((MIT OR ISC) AND Zlib)",
        ),
    ],
    ids=["no licence is stated for one part", "brackets"],
)
def test_the_licence_of_merged_features_is_one_that_a_store_may_have(tmp_path, first, second, joined):
    """NOASSERTION stands alone. What brackets hold together stays together."""
    store_of_first = seal_part(tmp_path, "a", range(8), groups=[group(licence=first)])
    store_of_second = seal_part(tmp_path, "b", range(8, N_CLIPS), groups=[group(licence=second)])

    merged = open_store(merge([store_of_first, store_of_second], tmp_path / "merged"))

    licence = merged["toy"].provenance["licence"]
    assert validate_licence(licence) == joined


def change_a_frame(clip):
    if clip.groups:
        clip.groups["toy"].arrays["frames"][0, 0] += 1
    return clip


CROPPED = group(preset={**group().provenance["preset"], "crop": 8})


@pytest.mark.parametrize(
    ("rows", "other", "message"),
    [
        (range(8, N_CLIPS), {"groups": [CROPPED]}, r"features of toy: provenance differs in preset\.crop"),
        (range(8, N_CLIPS), {"groups": [group(imported=True)]}, "provenance differs in imported"),
        (range(7, N_CLIPS), {"change": change_a_frame}, r"clip tt0009-é: array toy/frames"),
        (range(N_CLIPS), {"groups": [group("other")]}, "same backbones"),
        (range(8, N_CLIPS), {"groups": [ragged_group()]}, "shapes of their arrays differ"),
    ],
    ids=["cropped", "imported", "a common clip with another frame", "another backbone", "ragged frames"],
)
def test_stores_that_do_not_fit_are_not_merged(tmp_path, rows, other, message):
    """Two stores differ in settings that change numbers, or a clip that both have is not the same in both.

    The first store has clips 0 to 7 of 20; `rows` are those of the second, `other` how it is made otherwise.
    The message names what differs.
    """
    first = seal_part(tmp_path, "a", range(8))
    second = seal_part(tmp_path, "b", rows, **other)

    assert_not_merged([first, second], tmp_path, message)


def seal_first_planned(tmp_path, name, n_clips):
    """Seal a store that planned all clips and has the first ones of them; open it."""
    stage = Stage.open(staging_path(tmp_path / name), plan(N_CLIPS), [group()], CORPUS)
    commit_clips(stage, [clip.clip_id for clip in plan(N_CLIPS)[:n_clips]])
    about = {"licence": "CC-BY-4.0", "citation": "Nobody, 2026"}
    return open_store(seal_stage_of(tmp_path / name, allow_missing=True, **about))


def test_clips_that_one_store_planned_and_has_not_are_taken_from_another(tmp_path):
    """One store planned 20 clips and was sealed with the first 8; another store has the other 12.

    The merged store equals one of all 20 that was sealed at once, but for the file that names its parents.
    """
    with_first_8_of_20 = seal_first_planned(tmp_path, "a", n_clips=8)
    with_the_other_12 = seal_part(tmp_path, "b", range(8, 20))

    merged = merge([with_first_8_of_20, with_the_other_12], tmp_path / "merged")

    sealed_at_once = make_sealed_store(tmp_path, 20)
    assert files_that_differ(merged, sealed_at_once) == {NAMES_THE_PARENTS}


@pytest.fixture
def parts_of_two_corpora(tmp_path):
    """Two stores whose licences, CC-BY-4.0 and MIT, and corpora, Toy films and More, differ."""
    more = {"name": "More", "manifest_sha256": "cd" * 32}
    return [
        seal_part(tmp_path, "a", range(8)),
        seal_part(tmp_path, "b", range(8, N_CLIPS), licence="MIT", corpus=more),
    ]


def test_a_store_whose_vector_is_not_the_one_of_its_digest_is_not_merged(tmp_path):
    """In the table of the second store, the digest of one clip's vector is replaced by zeros."""
    first = seal_part(tmp_path, "a", range(8))
    second = seal_part(tmp_path, "b", range(8, N_CLIPS))
    clip_with_features = next(clip for clip in second.clips if clip.digests)
    table = second.path / "data/clips.csv"
    digest = clip_with_features.digests["toy/pooled"]
    table.write_text(table.read_text(encoding="utf-8").replace(digest, "0" * 64), encoding="utf-8")
    resealed(second.path)

    second_opened_again = open_store(second.path)
    stores = [first, second_opened_again]
    assert_not_merged(stores, tmp_path, "toy/pooled: not what data/clips.csv has a digest of")


def test_a_licence_and_a_corpus_are_asked_for_where_the_parts_differ_in_them(parts_of_two_corpora, tmp_path):
    """One store is of the corpus Toy films under CC-BY-4.0, the other one of More under MIT."""
    differing_licences = r"licence differs \(CC-BY-4.0; MIT\).*--licence"
    differing_corpora = r"corpus differs \(More; Toy films\).*--corpus"
    assert_not_merged(parts_of_two_corpora, tmp_path, differing_licences)
    assert_not_merged(parts_of_two_corpora, tmp_path, differing_corpora, licence="MIT")

    path = merge(parts_of_two_corpora, tmp_path / "merged", licence="MIT", corpus="Both")
    assert open_store(path).attributes["corpus"] == {"name": "Both"}


def test_merging_does_not_replace_a_store(parts_of_two_corpora, tmp_path):
    """Two stores are merged twice, into a store of the same name and version."""
    merge(parts_of_two_corpora, tmp_path / "merged", licence="MIT", corpus="Both")

    with pytest.raises(StoreError, match="exists"):
        merge(parts_of_two_corpora, tmp_path / "merged", licence="MIT", corpus="Both")


def test_the_command_names_what_a_merged_store_lacks_because_its_parts_differ(
    parts_of_two_corpora, tmp_path, capsys
):
    """The parts are of manifests with different digests, so the merged store names none.

    The answer is on stdout, which programs read; what was left out is on stderr alone.
    """
    stores = [store.path for store in parts_of_two_corpora]
    about = ["--licence", "MIT", "--corpus", "Both"]

    exit_code = obygaze("store", "merge", *stores, "--out", tmp_path / "merged", *about)

    assert exit_code == 0
    printed = capsys.readouterr()
    assert "corpus.manifest_sha256" in printed.err
    assert "corpus.manifest_sha256" not in printed.out


def test_one_store_alone_is_not_merged(parts_of_two_corpora, tmp_path):
    """A merge needs two stores at least."""
    one_store = parts_of_two_corpora[:1]

    with pytest.raises(StoreError):
        merge(one_store, tmp_path / "alone")


# --- stores that are given twice, or were changed


@pytest.fixture
def two_stores(tmp_path):
    """Two sealed stores of the same clips."""
    return make_sealed_store(tmp_path / "a"), make_sealed_store(tmp_path / "b")


def test_stores_of_the_same_clips_at_two_places_are_merged(two_stores, tmp_path):
    """Parts of a corpus may overlap, even entirely."""
    assert merge(two_stores, tmp_path / "merged").name == "merged-1.0.0"


def test_a_store_that_is_given_twice_is_not_merged_with_itself(tmp_path):
    """The same path stands twice in the list of stores to merge, which must be a slip.

    The result would be a copy of the store, and lack the one that was meant.
    """
    store = make_sealed_store(tmp_path / "a")

    assert_not_merged([store, store], tmp_path, "this store is given twice")


def test_a_store_that_is_given_by_two_paths_is_not_merged_with_itself(tmp_path):
    """The second path is a link to the store."""
    store = make_sealed_store(tmp_path / "a")
    link = tmp_path / "link-1.0.0"
    link.symlink_to(store)

    assert_not_merged([store, link], tmp_path, r"link-1\.0\.0: this store is given twice")


def rewrite(path, old, new):
    """Replace bytes of a file of a sealed store, as an editor or Git may do."""
    content = path.read_bytes()
    assert old in content
    path.chmod(0o644)
    path.write_bytes(content.replace(old, new))


@pytest.mark.parametrize("line_end", [b"\r\n", b" \n"], ids=["line ends of Windows", "a blank behind lines"])
def test_a_store_whose_table_of_clips_was_changed_is_not_merged(two_stores, tmp_path, line_end):
    """The merged store has digests of its own, which would be valid for the clips as they were changed."""
    _, second = two_stores
    rewrite(second / TABLE, b"\n", line_end)

    assert_not_merged(two_stores, tmp_path, f"{TABLE}: changed")


def test_a_store_whose_manifest_of_digests_was_changed_is_not_merged(two_stores, tmp_path):
    """The fingerprint of the store, which the merged one names as its parent, is made of this file."""
    _, second = two_stores
    listed_digest = (second / DIGESTS).read_bytes()[:64]
    rewrite(second / DIGESTS, listed_digest, b"0" * 64)

    assert_not_merged(two_stores, tmp_path, DIGESTS)
