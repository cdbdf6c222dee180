"""LEACE erases an attribute from features of any size: also from constant and from very small ones.

LEACE (least-squares concept erasure) is a linear map after which no linear model tells an attribute, such as
a gender, from the features. In `leace(X, attribute)(X)`, the map is fitted on X and applied to it.
"""

import numpy as np
import pytest

from obygaze_models.models import RidgeLogistic
from obygaze_studies.erasure import leace

N_ITEMS = 200


def planted(scales):
    """Plant an attribute, 0 or 1, of 200 items and features that know it, each multiplied by its scale.

    A feature of the scale 0 is constant.
    """
    generator = np.random.default_rng(0)
    attribute = np.arange(N_ITEMS) % 2
    X = generator.normal(size=(N_ITEMS, len(scales))) + attribute[:, None]
    return X * np.array(scales), attribute


@pytest.mark.parametrize("scales", [[1, 1, 1], [1, 1, 0], [1, 1e-7, 1e-7], [1e6, 1, 0]])
def test_after_erasing_each_feature_has_the_same_mean_for_both_values_of_the_attribute(scales):
    """The features know an attribute, and may be very large or small (as by 1e-7), or constant (0).

    The means may differ by a millionth of a feature's standard deviation at most. A very small feature must
    keep to that too: a probe that scales features would learn the attribute from what is left.
    """
    X, attribute = planted(scales)

    erased = leace(X, attribute)(X)

    difference_of_means = erased[attribute == 1].mean(axis=0) - erased[attribute == 0].mean(axis=0)
    is_constant = X.std(axis=0) == 0
    deviation = np.where(is_constant, 1, X.std(axis=0))
    assert np.abs(difference_of_means / deviation).max() < 1e-6


def test_erasing_an_attribute_leaves_a_constant_feature_as_it_is_to_the_bit():
    """Two features know the attribute, and the third is .1 in all items. LEACE erases the attribute.

    A constant that differed in its last bits would tell the attribute to a probe that scales features.
    """
    X, attribute = planted(scales=[1, 1, 0])
    constant = 2
    X[:, constant] = 0.1

    erased = leace(X, attribute)(X)

    assert (erased[:, constant] == 0.1).all()


def test_a_probe_of_scaled_features_learns_nothing_of_an_erased_attribute():
    """Three features know an attribute, which is erased from them, and two are constant.

    A probe is fitted on the features after they are scaled to one standard deviation each. It must call all
    items alike. If erasing changed a constant feature by rounding, scaling would make its last bits large,
    and by these the probe could tell the attribute.
    """
    X, attribute = planted([1, 1, 1, 0, 0])

    erased = leace(X, attribute)(X)
    deviation = erased.std(axis=0)
    scaled = (erased - erased.mean(axis=0)) / np.where(deviation > 0, deviation, 1)
    predicted = RidgeLogistic(C=0.1).fit(scaled, attribute).predict(scaled)

    assert len(np.unique(predicted)) == 1
