# SPDX-License-Identifier: Apache-2.0
"""What a kind is: everything that the rest of the server asks of one.

A room `kinds/<kind>/` has in `kind.py`

- the question: a frozen, slotted dataclass that inherits Query, with a field `kind`, and limits of
  its fields (kinds.fields), which the interface enforces; its docstring and the fields'
  descriptions stand in the OpenAPI document, in the client's method and in the workbench's form;
- `plan`: public facts, the question and what is offered → Planned. It raises InvalidQuery,
  InvalidFormula or InvalidPrivacy with a sentence that says what to change, and reads no private
  cell;
- the result: a frozen dataclass (or a union of some: `A | B`), from which the schema of replies is
  made. A field whose default is None is left out of a reply where it is None;
- examples: questions about the example table (kinds.example), with which the suite of tests attacks
  every kind;
- its group of questions and the sentence that it answers, in a reader's words without a term of
  statistics where one can be avoided: pages offer kinds by them;
- the page of the documentation;
- where a cap is judged by it: a typical question about any table.

`KIND` names them. The list of kinds is in kinds/__init__.py.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import cache
from typing import Any, Generic, TypeVar

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Planned
from reticent_server.domain.query import Query
from reticent_server.domain.schema import Schema

QueryT = TypeVar("QueryT", bound=Query)


class QuestionGroup(StrEnum):
    """What somebody wants to do who has a question; in the order in which pages offer them."""

    DESCRIBE = "Describe"
    TABLES = "Tables and counts"
    COMPARE = "Compare groups"
    MODEL = "Model a relation"
    TIME = "Time to event"
    POLICY = "Panels and policies"


def _none(schema: Schema) -> tuple[()]:  # noqa: ARG001
    return ()


@dataclass(frozen=True, slots=True)
class Kind(Generic[QueryT]):
    """A kind of question. result: a dataclass, or a union of them. page: the file's name below
    docs/kinds/, without ending.

    group, asks: where pages offer it, and its question as a sentence. title: how pages call it;
    empty: by its name. typical: questions that many would ask about a table of a schema, of kinds
    by which a cap is judged (kinds.shared.typical). for_analysts: whether analysts may ask it; the
    profile is the curator's.
    """

    query: type[QueryT]
    group: QuestionGroup
    asks: str
    plan: Callable[[DatasetFacts, QueryT, PrivacyCost], Planned]
    result: Any
    examples: tuple[QueryT, ...]
    page: str
    title: str = ""
    typical: Callable[[Schema], Sequence[QueryT]] = _none
    for_analysts: bool = True

    @property
    def label(self) -> str:
        """How pages call it."""
        return self.title or self.name.replace("_", " ").capitalize()

    @property
    def name(self) -> str:
        """The kind's name over HTTP."""
        return _name_of(self.query)  # type: ignore[arg-type]  # a class is hashable


@cache
def _name_of(query: type[Query]) -> str:
    return str(next(f for f in fields(query) if f.name == "kind").default)
