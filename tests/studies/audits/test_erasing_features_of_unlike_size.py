"""The eraser's promise does not depend on the features' units: constant and very small features keep it."""

import numpy as np
import pytest

from obygaze_models.models import RidgeLogistic
from obygaze_studies.erasure import leace

N_ITEMS = 200


def planted(scales):
    """Plant an attribute of 200 items, and features that know it, each in the units of its scale."""
    generator = np.random.default_rng(0)
    attribute = np.arange(N_ITEMS) % 2
    X = generator.normal(size=(N_ITEMS, len(scales))) + attribute[:, None]
    return X * np.array(scales), attribute


@pytest.mark.parametrize("scales", [[1, 1, 1], [1, 1, 0], [1, 1e-7, 1e-7], [1e6, 1, 0]])
def test_means_of_both_values_are_one_in_units_of_each_feature(scales):
    """A probe that scales features to one deviation would learn the attribute from what is left."""
    X, attribute = planted(scales)

    erased = leace(X, attribute)(X)

    difference = erased[attribute == 1].mean(axis=0) - erased[attribute == 0].mean(axis=0)
    deviation = np.where(X.std(axis=0) > 0, X.std(axis=0), 1)
    assert np.abs(difference / deviation).max() < 1e-6


def test_erasing_an_attribute_leaves_a_constant_feature_as_it_is_to_the_bit():
    """Two features know the attribute, and the third is .1 in all items. LEACE erases the attribute.

    A constant that differed in its last bits would tell the attribute to a probe that scales features.
    """
    X, attribute = planted(scales=[1, 1, 0])
    constant = 2
    X[:, constant] = 0.1

    erased = leace(X, attribute)(X)

    assert (erased[:, constant] == 0.1).all()


def test_a_probe_of_scaled_features_learns_nothing():
    """The audit's own probe scales features: it told the attribute by the rounding of constant ones."""
    X, attribute = planted([1, 1, 1, 0, 0])

    erased = leace(X, attribute)(X)
    deviation = erased.std(axis=0)
    scaled = (erased - erased.mean(axis=0)) / np.where(deviation > 0, deviation, 1)
    predicted = RidgeLogistic(C=0.1).fit(scaled, attribute).predict(scaled)

    assert len(np.unique(predicted)) == 1
