# SPDX-License-Identifier: Apache-2.0
"""A question that is being written: the texts of its form, and what is wrong with them, at the
field.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from reticent_server.domain.facts import DatasetFacts
from reticent_server.errors import ReticentError
from reticent_server.formula.labels import quote
from reticent_server.kinds import KINDS
from reticent_server.kinds.base import Kind, QuestionGroup
from reticent_server.pipeline.ask import Ask
from reticent_server.web.bodies import RequestBody
from reticent_server.web.tables import text
from reticent_server.web.validation import explained
from reticent_server.workbench.controls import Control, controls, given, listed_texts, texts
from reticent_server.workbench.own_examples import own_example

OFFERED: Sequence[Kind[Any]] = tuple(kind for kind in KINDS if kind.for_analysts)
CONTROLS: Mapping[str, tuple[Control, ...]] = {kind.name: controls(kind) for kind in OFFERED}
QUESTIONS: Mapping[QuestionGroup, tuple[Kind[Any], ...]] = {
    group: tuple(kind for kind in OFFERED if kind.group is group) for group in QuestionGroup
}
USUAL_EPSILON = "1"
_ELSEWHERE = "; the data set's description lists its columns"
"""Of the interface's sentences what a page shows beside them."""

_POSITION = re.compile(r"position (\d+) of the (\w+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Trouble:
    """What is wrong. field: the name of the question's field; empty: none in particular. caret: the
    text up to the place, and the text; None: no place is known.
    """

    said: str
    field: str = ""
    caret: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class QuestionDraft:
    """A form's texts. project: the shared project that pays; empty: the analyst's own budget."""

    dataset: str
    kind: Kind[Any]
    texts: Mapping[str, str]
    epsilon: str
    delta: str
    project: str

    @property
    def controls(self) -> tuple[Control, ...]:
        """The form's fields for this kind of question."""
        return CONTROLS[self.kind.name]

    def controls_for(self, facts: DatasetFacts) -> tuple[Control, ...]:
        """The controls that a form about a data set shows: those for persons where the unit is one,
        or where one is filled in, so that what is sent is always seen.
        """
        has_persons = bool(facts.schema.unit.column)
        return tuple(
            replace(c, told=own_example(c.told, c.name, facts.schema))
            for c in self.controls
            if has_persons or not c.is_of_persons or self.texts[c.key] != c.default
        )

    @property
    def is_complete(self) -> bool:
        """Whether every field without a default is filled in, so that it can be planned."""
        return all(self.texts.get(c.key, "").strip() for c in self.controls if c.is_needed)

    def body(self) -> dict[str, Any]:
        """The request as it is sent over HTTP."""
        privacy: dict[str, Any] = {"epsilon": _float(self.epsilon)}
        if self.delta:
            privacy["delta"] = _float(self.delta)
        query = {"kind": self.kind.name, **given(self.controls, self.texts)}
        body = {"dataset": self.dataset, "query": query, "privacy": privacy}
        return body | ({"project": self.project} if self.project else {})

    def trouble(self, error: ReticentError, columns: Sequence[str]) -> Trouble:
        """An error at its field: of a formula with the place in its text, and the column that may
        have been meant.
        """
        placed = _placed(self, error.detail.replace(_ELSEWHERE, ""))
        meant = [] if placed.caret is None else _meant(*placed.caret, columns)
        return replace(placed, said=f"{placed.said} Did you mean {meant[0]}?") if meant else placed


def asked_words(query: Mapping[str, Any]) -> str:
    """A stored question in a line: its fields that are not as by default."""
    defaults = {c.name: c.default for c in CONTROLS.get(query["kind"], ())}
    named = {k: text(v) for k, v in query.items() if k != "kind"}
    told = [
        said if name in {"formula", "column"} else f"{name.replace('_', ' ')}: {said}"
        for name, said in named.items()
        if said != defaults.get(name)
    ]
    return "; ".join(told)


def query_texts(query: Mapping[str, Any]) -> dict[str, str]:
    """The address's fields that ask a stored question again."""
    return {"kind": query["kind"], **texts(CONTROLS.get(query["kind"], ()), query)}


def draft_of(dataset: str, fields: Mapping[str, str]) -> QuestionDraft:
    """The draft of a form's fields; of a kind that there is not, the first. A kind that is being
    chosen gets the columns and formulas that were written for another, and its own settings.
    """
    named = {kind.name: kind for kind in OFFERED}
    chosen = fields.get("choose", "")
    kind = named.get(chosen or fields.get("kind", ""), OFFERED[0])
    own = {
        c.key: fields.get(c.key, c.default) if c.is_of_question or not chosen else c.default
        for c in CONTROLS[kind.name]
    }
    epsilon = fields.get("epsilon", "").strip() or USUAL_EPSILON
    delta, project = fields.get("delta", "").strip(), fields.get("project", "").strip()
    return _with_column(
        QuestionDraft(dataset, kind, own, epsilon, delta, project), fields.get("add", "")
    )


def asked(body: Mapping[str, Any], key: str | None = None) -> Ask:
    """The request of a body, held to the limits of the interface. Raises InvalidRequest and its
    kinds.
    """
    try:
        return RequestBody.model_validate_json(json.dumps(body)).ask(key)
    except ValidationError as error:
        placed = [{**each, "loc": ("body", *each["loc"])} for each in error.errors()]
        raise explained(placed) from None


def _float(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def _with_column(draft: QuestionDraft, added: str) -> QuestionDraft:
    """The draft after a press on a column's chip: "field:column"."""
    name, _, column = added.partition(":")
    control = next((c for c in draft.controls if c.name == name and c.adds), None)
    if control is None or not column:
        return draft
    text = draft.texts[control.key]
    named = quote(column) if control.look == "texts" else column
    joined = _in_formula if control.look == "formula" else _in_list
    texts = {**draft.texts, control.key: joined(text, named)}
    return QuestionDraft(
        draft.dataset, draft.kind, texts, draft.epsilon, draft.delta, draft.project
    )


def _in_list(text: str, column: str) -> str:
    """The list with the column, or without it where it was there."""
    names = listed_texts(text)
    names = [n for n in names if n != column] if column in names else [*names, column]
    return ", ".join(names)


def _in_formula(text: str, column: str) -> str:
    """The formula with one more term; the first column is the response. A plain term is taken out
    again.
    """
    name, text = quote(column), text.strip()
    if not text:
        return f"{name} ~ "
    response, tilde, terms = text.partition("~")
    parts = [part.strip() for part in terms.split("+") if part.strip()]
    parts = [p for p in parts if p != name] if name in parts else [*parts, name]
    return f"{response.strip()} ~ {' + '.join(parts)}" if tilde else f"{text} ~ {name}"


def is_named(text: str, column: str) -> bool:
    """Whether a text names a column."""
    return re.search(rf"(?<![\w.]){re.escape(column)}(?![\w.])", text) is not None


def _meant(text: str, at: int, columns: Sequence[str]) -> list[str]:
    """The column most like the word at a place that is none."""
    word = re.match(r"[\w.]+", text[at:])
    return [] if word is None or word[0] in columns else get_close_matches(word[0], columns, 1)


def _placed(draft: QuestionDraft, said: str) -> Trouble:
    found = _POSITION.search(said)
    if found is not None:
        several = next(
            (c for c in draft.controls if c.look == "texts" and c.name == f"{found[2]}s"), None
        )
        if several is not None:
            return Trouble(said, several.name)
        text_fields = [c for c in draft.controls if c.is_text]
        exact = [
            c
            for c in text_fields
            if c.name == found[2] or (found[2] == "condition" and c.name == "where")
        ]
        for control in [*exact, *text_fields]:
            text = draft.texts[control.key]
            if int(found[1]) <= len(text) + 1:
                return Trouble(said, control.name, (text, int(found[1]) - 1))
    words = re.findall(r"[\w]+", said)
    named = next((c.name for c in draft.controls if c.name in words), "")
    return Trouble(said, named)
