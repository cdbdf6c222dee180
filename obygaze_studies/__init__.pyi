from .obygaze12 import paper as paper
