"""Score films in time: timelines, segments, rates, judgements, and agreement with annotators."""
