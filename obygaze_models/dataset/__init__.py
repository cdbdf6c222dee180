"""Features, labels and movies of the same clips, from stores and a manifest."""

from obygaze_models.dataset.answers import with_answers
from obygaze_models.dataset.bags import load_bags
from obygaze_models.dataset.dataset import Dataset, Exclusion, Modality, Reads
from obygaze_models.dataset.features import (
    Features,
    Pool,
    StoredClips,
    find_group,
    perceived,
    read_array,
    read_features,
    unusable,
)
from obygaze_models.dataset.loading import join_modalities, load_dataset, load_datasets
from obygaze_models.dataset.variables import with_variables

__all__ = [
    "Dataset",
    "Exclusion",
    "Features",
    "Modality",
    "Pool",
    "Reads",
    "StoredClips",
    "find_group",
    "join_modalities",
    "load_bags",
    "load_dataset",
    "load_datasets",
    "perceived",
    "read_array",
    "read_features",
    "unusable",
    "with_answers",
    "with_variables",
]
