"""Frames that a control exchanges, where films have one clip each: clips do not keep their own frames."""

import numpy as np

from obygaze_models.models import AttentionPooling


def test_clips_that_are_the_only_ones_of_their_films_exchange_frames_with_clips_of_other_films():
    """The control "exchange" trains a model on clips whose frames are exchanged among clips of one label.

    Frames are exchanged within films. Here each of 20 films has one clip, which would keep its frames, and
    the control would learn the same as the model. So these clips exchange frames with those of their label in
    other films. In feature 0 each frame has the number of the clip that it was of.
    """
    n_clips = 20
    number_of_clip = np.arange(n_clips, dtype=float)
    X = np.tile(number_of_clip[:, None, None], (1, 4, 3))  # four frames, of three features
    y = np.arange(n_clips) % 2
    movies = np.array([f"film{number}" for number in range(n_clips)])

    exchanged = AttentionPooling(disturb="exchange")._disturb_frames(X, y, movies)

    is_of_own_clip = exchanged[:, :, 0] == number_of_clip[:, None]
    assert is_of_own_clip.mean() < 0.3
    for label in (0, 1):
        has_label = y == label
        assert sorted(exchanged[has_label].ravel()) == sorted(X[has_label].ravel())
