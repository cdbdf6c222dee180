from .html import Owned as Owned
from .html import film_page as film_page
from .html import write_film_page as write_film_page
from .view_model import ScoredCopy as ScoredCopy
