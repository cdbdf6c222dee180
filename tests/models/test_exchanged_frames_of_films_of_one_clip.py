"""Frames that a control exchanges, where films have one clip each: clips do not keep their own frames."""

import numpy as np

from obygaze_models.models import AttentionPooling


def test_clips_of_one_label_exchange_frames_where_each_is_the_only_one_of_its_film():
    """Exchanged within films alone, all clips kept their frames, and the control was the model itself."""
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
