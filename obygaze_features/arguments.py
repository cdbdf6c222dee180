"""Check what public functions are given against their annotations, and say what makes the right thing.

    @checked
    def evaluate(data: Dataset, ...) -> Run: ...

    evaluate: data is a Store; expected a Dataset: evaluate(load_dataset(STORE, MANIFEST))

The annotations are the only list of types. They are read at the first call; a check takes some microseconds.
Names, signatures and help stay those of the function. A call that Python itself refuses, such as one with too
few arguments, stays a TypeError.
"""

import builtins
import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from fractions import Fraction
from functools import cache, wraps
from itertools import islice
from numbers import Integral, Rational, Real
from types import NoneType, UnionType
from typing import Annotated, Any, ForwardRef, Literal, TypeVar, Union, cast, get_args, get_origin

from obygaze_features.errors import ArgumentError

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)

_MADE_BY: dict[type, str] = {}
"""Class -> the Python expression that makes an instance of it."""

MAX_ITEMS = 1000
"""Largest number of items of a collection that are checked, so that a check takes a limited time."""

LONGEST_SHOWN = 60
"""Largest number of characters of a value that a message shows."""

SHORT_LIST = 4
"""Largest number of items of a list that a message describes one by one."""


def made_by(expression: str) -> Callable[[C], C]:
    """Register, as a class decorator, how an instance of the class is made, for messages on wrong arguments.

    Parameters
    ----------
    expression
        A Python expression, with capitals for what the user fills in: `open_store(PATH)`.
    """

    def decorate(decorated_class: C) -> C:
        """Store the expression for a class, and return the class."""
        _MADE_BY[decorated_class] = expression
        return decorated_class

    return decorate


def checked(function: F) -> F:
    """Decorate a function so that it checks the types of its arguments against its annotations.

    For an argument of a wrong type the decorated function raises an ArgumentError. The message names the
    function and the argument, what was given, what is expected, and a right call.
    """

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        """Call the function if every argument has a type that its annotation allows."""
        annotations = _annotations(function)
        try:
            value_of_parameter = _signature(function).bind_partial(*args, **kwargs).arguments
        except TypeError:  # an unknown argument, which Python's own message names when the function is called
            value_of_parameter = {}
        for name, value in value_of_parameter.items():
            if name in annotations and not allows(annotations[name], value):
                raise ArgumentError(_message_of_refusal(function, name, value, annotations))
        return function(*args, **kwargs)

    return cast("F", call)


@cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a function, which is looked up once."""
    return inspect.signature(function)


@cache
def _annotations(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the type of each parameter of a function, except of ``*args`` and ``**kwargs``.

    Annotations that are written as text are evaluated. This is done at the first call, not at import, as they
    may name classes that are defined later.
    """
    names = _NamesOfModule(getattr(function, "__globals__", {}))
    types = {}
    for name, parameter in _signature(function).parameters.items():
        annotation = parameter.annotation
        takes_many = parameter.kind in {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
        if annotation is inspect.Parameter.empty or takes_many:
            continue
        if isinstance(annotation, str):
            annotation = eval(annotation, {}, names)  # noqa: S307 - our own source
        types[name] = annotation
    return types


# --- stand-ins for classes that are imported only for type checkers
# ---------------------------------------------------------------------------
# A module may import `torch` only for type checkers, as importing it takes seconds. If an annotation of it is
# `torch.Tensor`, both `torch` and its attribute `Tensor` are replaced by a stand-in, so that the check needs
# no import either. A value is of a stand-in if its class has that name.
class _StandIn(type):
    """Metaclass of stand-ins: classes that stand for a class of the same name that is not imported."""

    def __instancecheck__(cls, value: object) -> bool:
        """Return whether the class of a value, or a base class of it, has the stand-in's name."""
        return any(kind.__name__ == cls.__name__ for kind in type(value).__mro__)

    def __getitem__(cls, _: object) -> type:
        """Return the stand-in of `Array` for `Array[float]`: what is in the brackets is not checked."""
        return cls

    def __getattr__(cls, name: str) -> type:
        """Return the stand-in for an attribute: for `torch.Tensor`, that of `Tensor`.

        It is called when an annotation is evaluated in which the stand-in `torch` has such an attribute.
        Names with an underscore are no classes of annotations. Python itself asks for them, such as
        `__origin__`, to see what an object can do, and must be told that there is none.
        """
        if name.startswith("_"):
            raise AttributeError(name)
        return _stand_in(name)


def _stand_in(name: str) -> type:
    """Return the stand-in for a class, given its name with or without its module."""
    return _StandIn(_last_part(name), (), {})


def _last_part(dotted_name: str) -> str:
    """Return the name of a class without its module: `Tensor` for `torch.Tensor`."""
    return dotted_name.rsplit(".", maxsplit=1)[-1]


class _NamesOfModule(dict[str, Any]):
    """Names of a module, to evaluate annotations; a name that is imported only for type checkers included.

    Such a name does not exist when the program runs. A stand-in is used for it: a class by whose name values
    are checked (`_StandIn`).
    """

    def __missing__(self, name: str) -> type:
        """Return a class that stands for a name that the module does not have, such as `torch`.

        Python calls this for a name that is not in the dictionary. The module imports such a name for type
        checkers only; the class returned has that name (`_StandIn`).

        Raises
        ------
        KeyError
            The name is one of Python's own, such as `int`. After this error, Python looks it up among its own
            names.
        """
        if hasattr(builtins, name):
            raise KeyError(name)
        return _stand_in(name)


# --- whether an annotation allows a value
# ---------------------------------------------------------------------------
def allows(annotation: Any, value: object) -> bool:
    """Return whether an annotation allows a value.

    It is made to find mistakes of users, and differs from Python's types:

    - NumPy's numbers are numbers, and whole numbers are numbers of any kind.
    - An array is an array of any data type. It is also a sequence, whose items are all like its first.
    - A text is no sequence of texts, although Python can iterate over it. Nor is an object such as a store:
      an instance of a class that `made_by` decorates.

    Examples
    --------
    >>> allows(float | None, 2), allows(float, "2"), allows(list[int], ["a"])
    (True, False, False)
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is None:
        return _is_of_class(annotation, value)
    if origin in _RULE_OF_ORIGIN:
        return _RULE_OF_ORIGIN[origin](arguments, value)
    if _is_ndarray(origin):
        return hasattr(value, "__array__")
    if not isinstance(origin, type):
        return True  # a form of annotation that is not checked
    if issubclass(origin, Iterable):
        return _is_allowed_collection(origin, arguments, value)
    return isinstance(value, origin)


def _is_of_class(annotation: Any, value: object) -> bool:
    """Return whether a value is an instance of a class, or has all members of a protocol.

    An annotation without brackets may also be `Any`, a type variable, or the name of a class as a text.
    """
    if isinstance(annotation, ForwardRef):  # a class that is named by a text, such as list["Tensor"]
        annotation = _stand_in(annotation.__forward_arg__)  # to which values of a class of this name belong
    kind = _WIDER_CLASS.get(annotation, annotation)
    is_no_class = not isinstance(kind, type)  # a type variable, which stands for any class
    if kind is Any or is_no_class:
        return True
    if _is_protocol(kind):
        return _has_members(kind, value)
    return isinstance(value, kind)


def _is_protocol(kind: type) -> bool:
    """Return whether a class is a `typing.Protocol`, by the mark that Python gives these.

    The public function for it, `typing.is_protocol`, came with Python 3.13.
    """
    return bool(getattr(kind, "_is_protocol", False))


_WIDER_CLASS: Mapping[Any, type] = {int: Integral, float: Real, Fraction: Rational, None: NoneType}
"""Annotation -> the class whose instances it allows, if that is not itself."""


def _has_members(protocol: type, value: object) -> bool:
    """Return whether a value has all public members of a protocol; properties are not computed."""
    missing = object()
    members = [name for name in dir(protocol) if not name.startswith("_")]
    return all(inspect.getattr_static(value, name, missing) is not missing for name in members)


def _is_literal(choices: tuple[Any, ...], value: object) -> bool:
    """Return whether a value is one of those of a `Literal`; 1 is not True."""
    return any(type(value) is type(choice) and value == choice for choice in choices)


def _is_ndarray(kind: Any) -> bool:
    """Return whether a class is numpy's `ndarray`.

    It is recognised by its name, as importing numpy would make every command start slowly.
    """
    return getattr(kind, "__name__", "") == "ndarray"


def _union_allows(members: tuple[Any, ...], value: object) -> bool:
    """Return whether a member of a union, such as ``int | None``, allows a value.

    numpy's ArrayLike is itself a union, of numpy's classes and protocols, complex, bytes and str, and Python
    merges it into the union that it is part of: ``ArrayLike | None`` has all these members, and None. They
    are not checked one by one, as any object would fit one of the protocols, and as no function here takes a
    text as an array. They are replaced by one rule of ours, `_is_array_like`.
    """
    if not _has_array_like(members):
        return any(allows(member, value) for member in members)
    other_members = _without_array_like(members)
    return _is_array_like(value) or any(allows(member, value) for member in other_members)


def _has_array_like(members: tuple[Any, ...]) -> bool:
    """Return whether numpy's ArrayLike is part of a union: whether one of its protocols is a member."""
    return any(getattr(get_origin(member), "__name__", "") == "_NestedSequence" for member in members)


def _without_array_like(members: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the members of a union without those that numpy's ArrayLike brought into it.

    They are numpy's own classes, complex, bytes and str. So a union with ArrayLike never allows a text, even
    if str is also a member of its own.
    """
    others = []
    for member in members:
        kind = get_origin(member) or member
        is_of_numpy = getattr(kind, "__module__", "").startswith("numpy")
        if not is_of_numpy and kind not in _PYTHON_CLASSES_OF_ARRAY_LIKE:
            others.append(member)
    return tuple(others)


_PYTHON_CLASSES_OF_ARRAY_LIKE = frozenset({complex, bytes, str})
"""Python's classes that are members of numpy's ArrayLike."""


def _is_array_like(value: object) -> bool:
    """Return whether numpy can make an array of a value.

    It can make one of arrays, numbers and buffers, and of nested sequences of these, of texts or of None.
    Only the first `MAX_ITEMS` items of a sequence are checked, so that a long one takes little time.
    """
    if hasattr(value, "__array__") or isinstance(value, Real | memoryview | bytearray):
        return True
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        return False
    items = islice(value, MAX_ITEMS)
    return all(isinstance(item, str | None) or _is_array_like(item) for item in items)


_RULE_OF_ORIGIN: Mapping[Any, Callable[[tuple[Any, ...], object], bool]] = {
    Annotated: lambda arguments, value: allows(arguments[0], value),
    Callable: lambda _arguments, value: callable(value),
    Literal: _is_literal,
    Union: _union_allows,
    UnionType: _union_allows,
}
"""Origin of an annotation, such as `Union` -> function that tells whether its arguments allow a value."""

_COLLECTIONS: Sequence[tuple[type, Any]] = (
    (Mapping, Mapping),
    (Sequence, Sequence),
    (Set, Set),
    (Collection, Sequence | Set | Mapping),
    (Iterable, Sequence | Set | Mapping | Iterator),
)
"""A kind of collection in annotations, and the classes that are accepted for it; narrow kinds come first."""


def _is_allowed_collection(origin: type, arguments: tuple[Any, ...], value: object) -> bool:
    """Return whether a value is a collection that an annotation allows, such as ``Sequence[str]``.

    Parameters
    ----------
    origin
        The annotation's kind of collection, such as ``Sequence``.
    arguments
        What it may hold, such as ``(str,)``.
    value
        The value that was given.
    """
    # A text, or an object such as a store, can be iterated over. Given for a list, it is a mistake. Objects
    # of this package are known by their classes, which `made_by` has registered.
    is_object_of_this_package = any(kind in _MADE_BY for kind in type(value).__mro__)
    if isinstance(value, str | bytes) or is_object_of_this_package:
        return False

    # An array of numpy, or a column of pandas, is of none of Python's classes of collections. It serves as a
    # sequence; if a mapping is expected, it is checked below, like all else.
    is_of_numpy_or_pandas = hasattr(value, "dtype")
    if is_of_numpy_or_pandas:
        is_single_number = getattr(value, "ndim", 1) == 0
        if is_single_number:
            return False
        if not issubclass(origin, Mapping):
            # All items of an array, or of a column of a table, have the type of the first.
            first_item = islice(iter(cast("Iterable[object]", value)), 1)  # nothing if it is empty
            return _allows_all(arguments[0], first_item)

    is_accepted_class = isinstance(value, _accepted_collections(origin))
    return is_accepted_class and _allows_items(origin, arguments, value)


def _accepted_collections(origin: type) -> Any:
    """Return the classes whose instances are accepted for a kind of collection, such as `Set` or `tuple`.

    They are wider than the annotation: any sequence is accepted for a tuple, so also a list.
    """
    for kind, accepted in _COLLECTIONS:
        if issubclass(origin, kind):
            return accepted
    raise AssertionError(origin)


def _allows_items(origin: type, arguments: tuple[Any, ...], value: Any) -> bool:
    """Return whether the items of a collection, and the keys of a mapping, are allowed.

    An iterator is not looked into, because it can be read only once.
    """
    if isinstance(value, Iterator | range):
        return True
    if issubclass(origin, Mapping):
        type_of_keys, type_of_values = arguments
        return _allows_all(type_of_keys, value.keys()) and _allows_all(type_of_values, value.values())
    has_type_per_item = origin is tuple and Ellipsis not in arguments
    if has_type_per_item:
        return len(value) == len(arguments) and all(map(allows, arguments, value))
    return _allows_all(arguments[0], value)


def _allows_all(annotation: Any, items: Iterable[object]) -> bool:
    """Return whether an annotation allows the first `MAX_ITEMS` items of a collection.

    Checking each of a long list takes time. If the annotation is a plain class, such as `str`, the class of
    an item decides, so that one item of each class is checked. This does not do for `list[str]`, where what a
    list holds decides, nor for a protocol, of which objects of one class may have different members.
    """
    items_to_check: Iterable[object] = islice(items, MAX_ITEMS)
    is_plain_class = isinstance(annotation, type) and get_origin(annotation) is None
    if is_plain_class and not _is_protocol(annotation):
        item_of_class = {type(item): item for item in items_to_check}  # the last one of each class
        items_to_check = item_of_class.values()
    return all(allows(annotation, item) for item in items_to_check)


# --- what is said
# ---------------------------------------------------------------------------
def _message_of_refusal(
    function: Callable[..., Any], name: str, value: object, expected: Mapping[str, Any]
) -> str:
    """Write the message for an argument of a wrong type: what it is, what is expected, and a right call."""
    *other_kinds, last_kind = dict.fromkeys(_describe_kinds(expected[name]))
    kinds = f"{', '.join(other_kinds)} or {last_kind}" if other_kinds else last_kind
    example = _example_call(function, name, expected)
    return f"{function.__qualname__}: {name} is {_describe_value(value)}; expected {kinds}: {example}"


def _describe_value(value: object) -> str:
    """Describe a value in a message, a list also by its items: `a list of the text 'a' and 5`.

    All items of a short one are described; of a long one the first of each class, since one of another class
    is mostly what does not fit.
    """
    if not isinstance(value, list | tuple) or not value:
        return _describe_item(value)
    described: list[object] = list(value)
    if len(value) > SHORT_LIST:
        item_of_class: dict[type, object] = {}
        for item in value[:MAX_ITEMS]:
            item_of_class.setdefault(type(item), item)
        described = list(item_of_class.values())
    items = " and ".join(dict.fromkeys(map(_describe_item, described)))
    return f"{_describe_item(value)} of {items}"


def _describe_item(value: object) -> str:
    """Describe a value in a message: a short text or number itself, of anything else its class."""
    if value is None or isinstance(value, bool):
        return repr(value)
    is_plain = isinstance(value, str | int | float) and len(repr(value)) <= LONGEST_SHOWN
    if is_plain and isinstance(value, str):
        return f"the text {value!r}"
    if is_plain:
        return repr(value)
    return _with_article(type(value).__name__)


def _with_article(noun: str) -> str:
    """Put "a" or "an" before a noun."""
    return f"an {noun}" if noun[0].lower() in "aeiou" else f"a {noun}"


_WORDS: Mapping[Any, str] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    Fraction: "a whole number or a Fraction",
    bool: "True or False",
    NoneType: "None",
    None: "None",
    Callable: "a function",
}


def _describe_kinds(annotation: Any) -> Iterator[str]:
    """Yield a few words for each kind of value that an annotation allows, such as "a whole number"."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in {Union, UnionType}:
        yield from _describe_union(arguments)
    elif origin is Annotated:
        yield from _describe_kinds(arguments[0])
    elif origin is Literal:
        yield from map(repr, arguments)
    else:
        yield _describe_class(annotation, origin, arguments)


def _describe_union(members: tuple[Any, ...]) -> Iterator[str]:
    """Yield a few words for each kind of value that a union allows."""
    if _has_array_like(members):
        yield "an array or a list of numbers"
        members = _without_array_like(members)
    for member in members:
        yield from _describe_kinds(member)


def _describe_class(annotation: Any, origin: Any, arguments: tuple[Any, ...]) -> str:
    """Describe the values of a class, or of a collection such as ``Sequence[str]``.

    For example, `int` is "a whole number", ``Sequence[str]`` "a list, each item a text", and a class `Store`
    "a Store". The order of the cases matters: an array can be iterated over, and so can a mapping.

    Parameters
    ----------
    annotation
        The annotation.
    origin
        The kind of a collection, such as ``Sequence``; None for a class without brackets.
    arguments
        What stands in the brackets, such as ``(str,)``.
    """
    kind = annotation if origin is None else origin
    if _is_ndarray(origin):
        return "an array"
    if kind in _WORDS:
        return _WORDS[kind]
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "a dict by name"
    if isinstance(origin, type) and issubclass(origin, Iterable):
        has_type_per_item = origin is tuple and Ellipsis not in arguments
        a_list = f"a list of {len(arguments)}" if has_type_per_item else "a list"
        types_of_items = arguments if has_type_per_item else arguments[:1]
        kinds: list[str] = []
        for type_of_item in types_of_items:
            kinds += _describe_kinds(type_of_item)
        return f"{a_list}, each item {' or '.join(dict.fromkeys(kinds))}"
    return _with_article(_class_name(annotation))


def _class_name(annotation: Any) -> str:
    """Return the name of a class without its module, also if the annotation is a text (`ForwardRef`)."""
    # The text of a ForwardRef, and the name of a class; other annotations have neither.
    for attribute in ("__forward_arg__", "__name__"):
        if hasattr(annotation, attribute):
            return _last_part(str(getattr(annotation, attribute)))
    return _last_part(str(annotation))


def _example_call(function: Callable[..., Any], wrong: str, expected: Mapping[str, Any]) -> str:
    """Write a right call of a function for a message, such as `evaluate(load_dataset(STORE, MANIFEST))`.

    It has the required arguments, and the one that was wrong. Each is a Python expression that makes a value
    of its type, or its name in capitals if none is known.
    """
    arguments = []
    for name, parameter in _signature(function).parameters.items():
        is_required = parameter.default is inspect.Parameter.empty
        is_shown = is_required or name == wrong
        if name not in expected or not is_shown:
            continue
        value = _example_value(expected[name]) or name.upper()
        is_given_by_name = parameter.kind is inspect.Parameter.KEYWORD_ONLY or not is_required
        arguments.append(f"{name}={value}" if is_given_by_name else value)
    return f"{function.__qualname__}({', '.join(arguments)})"


def _example_value(annotation: Any) -> str:
    """Return a Python expression that makes a value of an annotated type; "" if none is known.

    For a class it is what `made_by` registered, for a collection one with a single item, and for a union the
    expression for its first member that has one.
    """
    origin = get_origin(annotation)
    if origin is None:
        return _expression_for(_class_name(annotation))

    arguments = get_args(annotation)
    if origin is Literal:
        return repr(arguments[0])
    if isinstance(origin, type) and issubclass(origin, Mapping):
        _, type_of_values = arguments
        value = _example_value(type_of_values) or "VALUE"
        return f"{{NAME: {value}}}"

    is_list = isinstance(origin, type) and issubclass(origin, Iterable)
    for argument in arguments:
        expression = _example_value(argument)
        if expression:
            return f"[{expression}]" if is_list else expression
    return ""


def _expression_for(class_name: str) -> str:
    """Return the Python expression that makes an object of a class, such as `open_store(PATH)`.

    The decorator `made_by` registered it with the class; "" if it registered none. Classes are compared by
    name, as an annotation may name a class that is imported for type checkers only, so that the class itself
    is not there to be compared.
    """
    # If several classes have the name, the one that was registered last counts.
    for known_class, expression in reversed(_MADE_BY.items()):
        if known_class.__name__ == class_name:
            return expression
    return ""
