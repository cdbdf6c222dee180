from . import paper as paper
