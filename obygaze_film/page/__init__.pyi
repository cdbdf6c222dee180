from .html import film_page as film_page
from .html import write_film_page as write_film_page
