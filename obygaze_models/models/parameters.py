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

    A parameter is one of the words of a ``Literal``, a boolean, what the metadata of an ``Annotated`` type
    demand, an estimator of a class, or None, as its type says. Others are not checked.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Collect what the annotations demand."""
        super().__init_subclass__(**kwargs)
        hints = {name: hint for base in reversed(cls.__mro__) for name, hint in get_annotations(base).items()}
        known = {name: _constraints(hint) for name, hint in hints.items()}
        cls._parameter_constraints = {name: each for name, each in known.items() if each}


def _constraints(hint: Any) -> list[Any]:
    """List what scikit-learn accepts for a type; empty for one that it can't check."""
    found: list[Any] = []
    for part in get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,):
        if get_origin(part) is Literal:
            found.append(StrOptions(set(get_args(part))))
        elif get_origin(part) is Annotated:
            found += part.__metadata__
        elif part in (bool, NoneType):
            found.append("boolean" if part is bool else None)
        elif isinstance(part, type) and issubclass(part, BaseEstimator):
            found.append(part)
        else:
            return []
    return found
