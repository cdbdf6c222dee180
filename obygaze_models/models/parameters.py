"""Check estimators' parameters by their types, as scikit-learn checks them by its table of constraints."""

from inspect import get_annotations
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin

from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

Count = Annotated[int, Interval(Integral, 1, None, closed="left")]
Seed = Annotated[int, Interval(Integral, 0, None, closed="left")]
Positive = Annotated[float, Interval(Real, 0, None, closed="neither")]


class Estimator(BaseEstimator):
    """Base class of estimators whose parameters are annotated in their class.

    Values are checked by the parameter's type: one of the words of a ``Literal``, a boolean, an estimator of
    a class, None, or what the metadata of an ``Annotated`` type demand. Parameters of other types are not
    checked.
    """

    # scikit-learn's table: name of a parameter -> its constraints, of which one must hold.
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Build scikit-learn's table of parameter constraints from the annotations of class and bases."""
        super().__init_subclass__(**kwargs)
        annotations: dict[str, Any] = {}
        # Base classes first, so that a class can override their annotations.
        for base in reversed(cls.__mro__):
            annotations |= get_annotations(base)
        cls._parameter_constraints = {}
        for name, annotation in annotations.items():
            constraints = _constraints(annotation)
            if constraints:
                cls._parameter_constraints[name] = constraints


def _constraints(annotation: Any) -> list[Any]:
    """Translate a type annotation into scikit-learn's constraints: a value must meet one of them.

    The list is empty for types that are not checked.
    """
    is_union = get_origin(annotation) in (Union, UnionType)
    members = get_args(annotation) if is_union else (annotation,)

    constraints: list[Any] = []
    for member in members:
        if get_origin(member) is Literal:
            constraints.append(StrOptions(set(get_args(member))))
        elif get_origin(member) is Annotated:
            constraints += member.__metadata__  # scikit-learn's constraints, such as an `Interval`
        elif member is bool:
            constraints.append("boolean")
        elif member is NoneType:
            constraints.append(None)
        elif isinstance(member, type) and issubclass(member, BaseEstimator):
            constraints.append(member)
        else:
            # A member of the union that can't be checked: any value may be right.
            return []
    return constraints
