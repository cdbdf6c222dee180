"""Pushing a store into a dataset of the Hugging Face Hub."""

from dataclasses import replace

from obygaze_features.store.errors import StoreError
from obygaze_features.store.layout import MANIFEST, TAG_MANIFEST
from obygaze_features.store.reading.hub import asking, place_of
from obygaze_features.store.reading.objects import Folder


def push_to_hub(source: Folder, url: str) -> str:
    """Upload a store into a dataset repository, its digest manifests last; return its place, with the commit.

    The library skips what is there already, so that a push that was stopped goes on.
    """
    from huggingface_hub import HfApi  # noqa: PLC0415 - obygaze[remote]

    place = place_of(url)
    if place.commit:
        raise StoreError(f"{url}: leave out the revision, a push makes one")
    last = [MANIFEST, TAG_MANIFEST]
    within = place.folder.rstrip("/") or None
    with asking(url):
        api = HfApi()
        api.create_repo(place.repository, repo_type="dataset", exist_ok=True)
        for what, only, all_but in (("files", None, last), ("digests", last, None)):
            done = api.upload_folder(
                repo_id=place.repository,
                repo_type="dataset",
                folder_path=source.path,
                path_in_repo=within,
                commit_message=f"{source.name}: {what}",
                allow_patterns=only,
                ignore_patterns=all_but,
            )
    return replace(place, commit=done.oid).where
