from .evaluation import evaluate_films as evaluate_films
from .film_groups import compare_films as compare_films
from .learning import learn_from_judgements as learn_from_judgements
from .score import score_film as score_film
from .score import score_films as score_films
from .timeline import Timeline as Timeline
from .timeline import read_films as read_films
