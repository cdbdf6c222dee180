from .dataset import Dataset as Dataset
from .dataset import Exclusion as Exclusion
from .dataset import Modality as Modality
from .features import find_group as find_group
from .features import read_features as read_features
from .loading import join_modalities as join_modalities
from .loading import load_dataset as load_dataset
from .loading import load_datasets as load_datasets
