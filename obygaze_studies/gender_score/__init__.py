"""Gender bias of captions: Gender Score, objects, co-occurrence, language-model priors (Sabir and Padró)."""
