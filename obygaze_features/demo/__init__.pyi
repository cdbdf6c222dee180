from .corpus import UNLABELLED as UNLABELLED
from .corpus import compare_with_planted as compare_with_planted
from .corpus import plan_corpus as plan_corpus
from .corpus import write_corpus as write_corpus
