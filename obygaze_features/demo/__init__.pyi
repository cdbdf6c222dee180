from .corpus import UNLABELLED as UNLABELLED
from .corpus import PlannedMovie as PlannedMovie
from .corpus import beside_planted as beside_planted
from .corpus import plan_corpus as plan_corpus
from .corpus import write_corpus as write_corpus
