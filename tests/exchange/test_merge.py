"""Combining stores and growing one: nothing is mixed that must not be; equal bytes, as if at once."""

import itertools

import numpy as np
import pytest

from obygaze_features.errors import StoreError
from obygaze_features.exchange.merge import merge
from obygaze_features.store import Stage, open_store, seal, staging_path, verify
from obygaze_features.store.format import CROISSANT
from obygaze_features.store.testing import seal_arrays

from ..store.toy_stores import CORPUS, commit_clips, group, plan, ragged, result, sealed, status_of, tree

N = 20


def part(tmp_path, name, rows, *, change=None, corpus=CORPUS, groups=None, **settings):
    """A store of some clips of the plan of N."""
    kinds = groups or [group()]
    clips = [clip for position, clip in enumerate(plan(N)) if position in rows]
    stage = Stage.open(staging_path(tmp_path / name), clips, kinds, corpus)
    with stage.writer() as writer:
        for clip in clips:
            features = result(clip.clip_id, kinds, status_of(clip.clip_id))
            writer.commit([change(features) if change else features])
    about = {"licence": "CC-BY-4.0", "citation": "Nobody, 2026"} | settings
    return open_store(seal(None, tmp_path / name, **about))


def refused(stores, tmp_path, match, **settings):
    with pytest.raises(StoreError, match=match) as caught:
        merge(stores, tmp_path / "merged", **settings)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "merged-1.0.0").exists()


@pytest.fixture
def store_of(tmp_path):
    """Seal a store of one clip of a film."""
    vectors = {"net": {"pooled": np.zeros((1, 4), np.float32)}}
    return lambda name, movie: open_store(seal_arrays(tmp_path / name, {name: movie}, vectors))


@pytest.mark.parametrize(
    "spelling", ["\u0421asablanca", "casablanca"], ids=["a Cyrillic letter", "small letters"]
)
def test_stores_whose_films_have_confusable_names_are_not_merged(store_of, tmp_path, spelling):
    refused([store_of("a", "Casablanca"), store_of("b", spelling)], tmp_path, "are one name")


def test_stores_of_unlike_films_are_merged(store_of, tmp_path):
    merged = merge([store_of("a", "Casablanca"), store_of("d", "Psycho")], tmp_path / "both")
    assert len(open_store(merged).clips) == 2


@pytest.fixture(params=[0, 3], ids=["without common clips", "with three common clips"])
def two_parts(request, tmp_path, toy):
    return [
        part(tmp_path, "a", range(8 + request.param), groups=[toy]),
        part(tmp_path, "b", range(8, N), groups=[toy]),
    ]


def test_a_merged_store_is_that_of_all_clips_at_once_but_for_its_parents(two_parts, tmp_path, toy):
    at_once = sealed(tmp_path, N, [toy])
    path = merge(two_parts, tmp_path / "merged")
    merged_files = tree(path / "data")
    files_at_once = tree(at_once / "data")
    assert merged_files.keys() == files_at_once.keys()
    changed = {name for name in merged_files if merged_files[name] != files_at_once[name]}
    assert changed == {"features.zarr/zarr.json"}
    assert (path / CROISSANT).read_bytes() == (at_once / CROISSANT).read_bytes()


def test_a_merged_store_verifies_and_leaves_nothing_beside_it(two_parts, tmp_path):
    path = merge(two_parts, tmp_path / "merged")
    assert verify(path, "full").ok
    assert not (tmp_path / "merged-1.0.0.merging").exists()


def test_a_merged_store_names_its_parents(two_parts, tmp_path):
    first, second = two_parts
    path = merge(two_parts, tmp_path / "merged")
    store = open_store(path)
    assert store.attributes["parent"] == first.fingerprint
    assert store.attributes["merged_with"] == [second.fingerprint]
    card = (path / "README.md").read_text(encoding="utf-8")
    assert first.fingerprint in card
    assert second.fingerprint in card


def test_a_merge_after_an_interruption_gives_the_same_store(tmp_path, toy):
    stores = [part(tmp_path, name, range(start, N, 3), groups=[toy]) for start, name in enumerate("abc")]
    merged = merge(stores, tmp_path / "whole")
    calls = itertools.count()

    def stop(_done, _total):
        if next(calls) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        merge(stores, tmp_path / "cut", progress=stop)
    assert not (tmp_path / "cut-1.0.0.merging").exists()
    assert open_store(merge(stores, tmp_path / "cut")).fingerprint == open_store(merged).fingerprint


def test_a_merge_after_a_killed_one_takes_the_values_of_the_stores(tmp_path, toy):
    stores = [part(tmp_path, "a", range(8), groups=[toy]), part(tmp_path, "b", range(8, N), groups=[toy])]
    merged = merge(stores, tmp_path / "whole")
    stage = Stage.open(tmp_path / "merged-1.0.0.merging/part/stage", plan(N), [toy], CORPUS)
    left_behind = result(plan(N)[0].clip_id, [toy])
    left_behind.groups["toy"].arrays["pooled"][0] += 1
    with stage.writer() as writer:
        writer.commit([left_behind])
    assert open_store(merge(stores, tmp_path / "merged")).fingerprint == open_store(merged).fingerprint


def test_contacts_and_licences_of_merged_stores_are_joined(tmp_path):
    first = part(tmp_path, "a", range(8), groups=[group(contact="b@b", licence="MIT", commit="1" * 40)])
    second = part(tmp_path, "b", range(8, N), groups=[group(contact="a@a", licence="CC0-1.0", commit=None)])
    joined = open_store(merge([first, second], tmp_path / "merged"))["toy"].provenance
    assert (joined["contact"], joined["licence"], joined["commit"]) == ("a@a; b@b", "CC0-1.0 AND MIT", None)
    assert joined["hub"] == first["toy"].provenance["hub"]


def bend(made):
    if made.groups:
        made.groups["toy"].arrays["frames"][0, 0] += 1
    return made


CROPPED = group(preset={**group().provenance["preset"], "crop": 8})


@pytest.mark.parametrize(
    ("rows", "other", "message"),
    [
        (range(8, N), {"groups": [CROPPED]}, r"features of toy: provenance differs in preset\.crop"),
        (range(8, N), {"groups": [group(imported=True)]}, "provenance differs in imported"),
        (range(7, N), {"change": bend}, r"clip tt0009-é: array toy/frames"),
        (range(N), {"groups": [group("other")]}, "same backbones"),
        (range(8, N), {"groups": [ragged()]}, "shapes of their arrays differ"),
    ],
)
def test_stores_that_do_not_fit_are_not_merged(tmp_path, rows, other, message):
    refused([part(tmp_path, "a", range(8)), part(tmp_path, "b", rows, **other)], tmp_path, message)


def test_missing_clips_are_taken_from_whoever_has_them(tmp_path):
    stage = Stage.open(staging_path(tmp_path / "a"), plan(N), [group()], CORPUS)
    commit_clips(stage, [clip.clip_id for clip in plan(N)[:8]])
    settings = {"licence": "CC-BY-4.0", "citation": "Nobody, 2026"}
    first = open_store(seal(None, tmp_path / "a", allow_missing=True, **settings))
    path = merge([first, part(tmp_path, "b", range(8, N))], tmp_path / "merged")
    ours = tree(path / "data")
    theirs = tree(sealed(tmp_path, N) / "data")
    assert {name for name in ours if ours[name] != theirs[name]} == {"features.zarr/zarr.json"}


@pytest.fixture
def unlike_parts(tmp_path):
    """Two parts of one list of clips whose licences and corpora differ."""
    more = {"name": "More", "manifest_sha256": "cd" * 32}
    return [
        part(tmp_path, "a", range(8)),
        part(tmp_path, "b", range(8, N), licence="MIT", corpus=more),
    ]


def test_a_licence_is_asked_for_where_the_parts_differ_in_it(unlike_parts, tmp_path):
    refused(unlike_parts, tmp_path, r"licence differs \(CC-BY-4.0; MIT\).*--licence")


def test_a_name_of_the_corpus_is_asked_for_where_the_parts_differ_in_it(unlike_parts, tmp_path):
    refused(unlike_parts, tmp_path, r"corpus differs \(More; Toy films\).*--corpus", licence="MIT")


def test_a_merged_store_has_the_corpus_that_was_given(unlike_parts, tmp_path):
    path = merge(unlike_parts, tmp_path / "merged", licence="MIT", corpus="Both")
    assert open_store(path).attributes["corpus"] == {"name": "Both"}


def test_merging_does_not_replace_a_store(unlike_parts, tmp_path):
    merge(unlike_parts, tmp_path / "merged", licence="MIT", corpus="Both")
    with pytest.raises(StoreError, match="exists"):
        merge(unlike_parts, tmp_path / "merged", licence="MIT", corpus="Both")


def test_one_store_alone_is_not_merged(unlike_parts, tmp_path):
    with pytest.raises(StoreError):
        merge(unlike_parts[:1], tmp_path / "alone")


def test_a_damaged_store_is_not_merged(tmp_path):
    first = part(tmp_path, "a", range(8))
    second = part(tmp_path, "b", range(8, N))
    table = second.path / "data/clips.csv"
    good = next(clip.digests["toy/pooled"] for clip in second.clips if clip.digests)
    table.write_text(table.read_text(encoding="utf-8").replace(good, "0" * 64), encoding="utf-8")
    refused([first, open_store(second.path)], tmp_path, "toy/pooled: not what data/clips.csv has a digest of")
