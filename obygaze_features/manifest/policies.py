"""Apply label policies, which treat clips without a visual concept."""

from dataclasses import replace
from enum import StrEnum

from obygaze_features.arguments import checked
from obygaze_features.errors import ManifestError
from obygaze_features.manifest.clip import Clip
from obygaze_features.manifest.codebook import Codebook
from obygaze_features.manifest.manifest import Manifest

UNRELEASED: frozenset[str] = frozenset({
    "tt0119822-142", "tt0119822-161", "tt0119822-163", "tt0119822-179", "tt0212338-093", "tt0212338-094",
    "tt0212338-095", "tt0212338-096", "tt1045658-033", "tt1045658-039", "tt1045658-042", "tt1045658-123",
    "tt1142988-037", "tt1142988-110", "tt1193138-043", "tt1193138-045", "tt1193138-046", "tt1193138-047",
    "tt1193138-048", "tt1193138-049", "tt1193138-050", "tt1454029-131", "tt1570728-033", "tt2267998-180",
})  # fmt: skip
"""ObyGaze12 clips that its split files lack though the rule keeps them: 17 EN, 5 HN, 2 S.

No column of the annotations explains why (all have a video name, a graph and an overlap above the threshold),
so they can only be listed.
"""


class LabelPolicy(StrEnum):
    """A label policy; always reported beside the numbers that depend on it.

    PAPER: a clip with no visual concept gets the lowest level (EN); its concepts stay.
    RELEASED: a clip whose concepts are all non-visual is left out, and so are the UNRELEASED ones, as in the
    released split files.
    RAW: as annotated.
    """

    PAPER = "paper"
    RELEASED = "released"
    RAW = "raw"


@checked
def policies_of(codebook: Codebook) -> tuple[LabelPolicy, ...]:
    """Return the label policies that a codebook allows: those it lists, and always `RAW`, the last one."""
    allowed = {*codebook.policies, LabelPolicy.RAW.value}
    return tuple(policy for policy in LabelPolicy if policy.value in allowed)


@checked
def apply_policy(manifest: Manifest, policy: LabelPolicy) -> Manifest:
    """Return a manifest with its labels changed as a policy says; clips without a level stay as they are.

    Raises
    ------
    ManifestError
        If the manifest's codebook does not list the policy.
    """
    codebook = manifest.codebook
    if policy not in policies_of(codebook):
        raise ManifestError(
            f"label policy {policy}: the codebook {codebook.name!r} "
            f"has {', '.join(policies_of(codebook))} alone"
        )
    if policy is LabelPolicy.PAPER:
        return manifest.with_clips(_as_in_paper(clip, codebook) for clip in manifest)
    if policy is LabelPolicy.RELEASED:
        return manifest.with_clips(clip for clip in manifest if _is_released(clip, codebook))
    return manifest


def _as_in_paper(clip: Clip, codebook: Codebook) -> Clip:
    """Return a clip under the paper's policy: at the lowest level if it has a level and no visual concept."""
    if clip.level is None or codebook.visual(clip.concepts):
        return clip
    return replace(clip, level=codebook.level_names[0])


def _is_released(clip: Clip, codebook: Codebook) -> bool:
    """Return whether the released split files keep a clip; one without a level is kept."""
    if clip.level is None:
        return True
    has_only_concepts_not_visual = bool(clip.concepts) and not codebook.visual(clip.concepts)
    return not has_only_concepts_not_visual and clip.clip_id not in UNRELEASED
