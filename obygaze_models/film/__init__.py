"""Scores of films in time: timelines, segments, rates, judgements, and their agreement with people."""
