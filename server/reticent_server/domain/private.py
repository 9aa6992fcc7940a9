# SPDX-License-Identifier: Apache-2.0
"""A wrapper for everything that is computed from private cells and has not been released."""

from collections.abc import Callable
from typing import Generic, NoReturn, TypeVar

T = TypeVar("T")
U = TypeVar("U")

_MESSAGE = "private value"


class Private(Generic[T]):
    """Holds a value that only the engine and the mechanisms may unwrap.

    It has a constant repr, and refuses to be pickled, compared, iterated, measured or used as a
    condition, so that a log line, a trace or a branch cannot depend on it by accident.
    """

    __slots__ = ("_value",)

    def __init__(self, value: T) -> None:
        self._value = value

    def unwrap(self) -> T:
        """The value; to be called by the engine and by mechanisms only (a test greps for it)."""
        return self._value

    def map(self, change: Callable[[T], U]) -> "Private[U]":
        """The value as `change` makes it, still private; `change` keeps nothing and says
        nothing."""
        return Private(change(self._value))

    def __repr__(self) -> str:
        return "<private>"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return "<private>"

    def _refuse(self, *_: object) -> NoReturn:
        raise TypeError(_MESSAGE)

    __reduce__ = __reduce_ex__ = __getstate__ = _refuse
    __bool__ = __len__ = __iter__ = __hash__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __copy__ = __deepcopy__ = __float__ = __int__ = _refuse
