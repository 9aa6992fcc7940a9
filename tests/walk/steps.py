# SPDX-License-Identifier: Apache-2.0
"""What happens to a question on its way, and what has to hold on it (the list is in `walk`)."""

import asyncio
import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain, count
from math import isfinite
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
from jsonschema import Draft202012Validator

import reticent
from reticent._reading import read
from reticent_server.app import create_app
from reticent_server.cli.dataset_load import load_dataset
from reticent_server.cli.init import prepare
from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, RHO_UNITS
from reticent_server.domain.facts import Policy
from reticent_server.pipeline.profile import release_profile
from reticent_server.pipeline.services import Services
from reticent_server.workbench.drafts import query_texts
from reticent_server.workbench.exports import formats
from support.documents.code_blocks import ROOT
from support.installations.small import Installation, opened
from walk.promises import broken_promises
from walk.questions import (
    DELTA,
    EPSILONS,
    NAMES,
    TABLES,
    Interface,
    Json,
    Question,
    Table,
    Value,
)

PLENTY: Mapping[str, Any] = {"epsilon": 1e6, "delta": 0.5}
"""A budget that no walk uses up."""
BUDGETS: Mapping[str, Mapping[str, Any]] = {
    "basic": PLENTY,
    "zcdp": PLENTY,
    "gdp": {"epsilon": 20.0, "delta": 0.01},  # as large as its accounts are; then another asks
}
"""By the rules of accounts."""
RULES = tuple(BUDGETS)
PLAN_ERROR = "a plan is an error"
LEAST_SENTINEL = 1e15
"""No amount, estimate or width of the walk's tables is as large."""
SENTINELS = [(2**63 - 1) / units for units in (EPSILON_UNITS, DELTA_UNITS, RHO_UNITS)]
SCHEMA = Draft202012Validator(reticent.release_schema())
_NOT_SHOWN = re.compile(r">\s*(?:nan|[-−]?inf|None|NaN|Infinity)\s*<")
_NO_AMOUNTS = frozenset({"deadline_ms", "radius_squared"})
"""Numbers that may be large: a time; and the radius within which a fit's weights are 1, which for a
fit without weights is beyond all rows."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that does not hold. what: in the words of `walk`, the same for faults alike."""

    what: str
    question: Question
    said: str = ""

    def __str__(self) -> str:
        return f"{self.what}: {self.said}\n    {self.question}"


@dataclass
class Walk:
    """A server with the tables, in this process, and those who ask; what was found, and how much
    was walked."""

    directory: Path
    services: Services
    loop: asyncio.Runner
    walked: Counter[str] = field(default_factory=Counter)
    faults: list[Fault] = field(default_factory=list)
    replies: list[tuple[Question, Json]] = field(default_factory=list)
    """Releases with a reply that R has not read yet."""
    turns: Iterator[int] = field(default_factory=count)
    refusals: Counter[Any] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.application = create_app(self.services)
        self.clients = {rule: self._analyst(rule) for rule in BUDGETS}
        self.interface = Interface(self.send("basic", "GET", "/openapi.json").json())

    def _analyst(self, rule: str) -> httpx.AsyncClient:
        """A new analyst with an account for each table, signed in to the workbench."""
        name = f"{rule}-{next(self.turns)}"
        analyst, key = self.services.access.add_analyst(name, by="walk")
        budget: Any = {**BUDGETS[rule], "rule": rule, "by": "walk"}
        for table in TABLES:
            self.services.ledger.set_analyst_budget(analyst, table.name, table.name, **budget)
            self.services.access.grant(analyst, table.name, by="walk")
        return _signed_in(self.loop, self.application, key)

    def send(self, rule: str, method: str, path: str, **options: Any) -> httpx.Response:
        """One request of the analyst whose account is kept by that rule."""
        return self.loop.run(self.clients[rule].request(method, path, **options))

    def question(self, query: Json, table: Table) -> Question:
        """The query about a table, under the next rule, at the next ε: in turn, so that questions
        that follow each other meet all of them."""
        turn = next(self.turns)
        rule = RULES[(turn + turn // len(TABLES)) % len(RULES)]
        return Question(table.name, query, rule, EPSILONS[turn // 7 % len(EPSILONS)])

    def hold(self, holds: bool, what: str, question: Question, said: Any = "") -> bool:
        """Notes a fault where something does not hold."""
        if not holds:
            self.faults.append(Fault(what, question, str(said)[:400]))
        return holds

    def planned(self, question: Question, *, again: bool = False) -> Json | None:
        """The plan; None where the question is refused. again: of another analyst, whose account
        is full."""
        reply = self.send(question.rule, "POST", "/v1/plans", json=question.body)
        self.walked["plans"] += 1
        if reply.status_code == 200:
            plan: Json = reply.json()
            if not plan["budget"]["covered"] and not (again or plan["budget"]["analyst"] is None):
                self.clients[question.rule] = self._analyst(question.rule)
                return self.planned(question, again=True)
            self.hold(not sentinels(plan), "a plan shows a sentinel", question, sentinels(plan))
            return plan
        if self.hold(reply.status_code == 422, PLAN_ERROR, question, reply.text):
            self.walked["refusals"] += 1
            said = reply.json()["detail"]
            named = names_a_part(said, question, self.interface)
            self.hold(named, "a refusal names no field", question, said)
            self.refusals[(question.query["kind"], said, named)] += 1
        return None

    def taken(self, value: Value) -> tuple[Question, Json] | None:
        """The first question with the value that is planned. A choice is tried in all contexts, on
        all tables, and beside each value of the other fields; another value in two contexts, on a
        table of rows and one of persons."""
        turn = next(self.turns)
        of_rows, of_persons = TABLES[turn % 2], TABLES[2 + turn % 4]
        contexts = self.interface.contexts(value)
        if value.is_choice:
            tables = (of_rows, TABLES[1 - turn % 2], *TABLES[2:])
            asked = [(table, query) for table in tables for query in contexts]
            beside = ((of_rows, query) for query in self.interface.beside(value))
            tried: Iterable[tuple[Table, Json]] = chain(asked, beside)
        else:
            tried = [(of_rows, contexts[0]), (of_persons, contexts[-1])]
        for table, query in tried:
            for each in self.interface.about(table, query):
                question = self.question(each, table)
                if value.is_choice:  # some need a larger ε
                    question = replace(question, epsilon=max(EPSILONS))
                before = len(self.faults)
                plan = self.planned(question)
                if plan is not None:
                    return question, plan
                if any(fault.what == PLAN_ERROR for fault in self.faults[before:]):
                    return None
        return None

    def released(self, question: Question, plan: Json, *, shown: bool = True) -> Json | None:
        """The release of a planned question, with all that has to hold of it. shown: whether its
        pages and files are looked at."""
        reply = self.send(question.rule, "POST", "/v1/releases", json=question.body)
        self.walked["releases"] += 1
        if reply.status_code == 403 and not plan["budget"]["covered"]:
            return None
        if not self.hold(reply.status_code == 201, "a release is an error", question, reply.text):
            return None
        release: Json = reply.json()
        status = release["status"]
        self.walked[status] += 1
        self.hold(status in {"reply", "no_reply"}, f"a release is {status}", question)
        self.hold(release["charged"] == plan["cost"], "the charge is not the plan's", question)
        wrong = next(SCHEMA.iter_errors(release), None)
        self.hold(wrong is None, "a release is not of its schema", question, wrong)
        if status == "reply":
            said = (plan["answers"], release.get("answers", ""))
            self.hold(said[0] == said[1], "plan and reply say another thing", question, said)
            self.hold(
                not sentinels(release), "a release shows a sentinel", question, sentinels(release)
            )
            for what, more in broken_promises(question, plan["precision"], release["result"]):
                self.hold(False, what, question, more)
            self.replies.append((question, release))
        again = self.send(question.rule, "GET", f"/v1/releases/{release['id']}")
        self.hold(again.content == reply.content, "a release fetched again is another", question)
        self._read(question, release)
        if shown:
            self._show(question, release)
        return release

    def _read(self, question: Question, release: Json) -> None:
        """By the client, as somebody looks at it."""
        self.walked["read by the client"] += 1
        try:
            answer = read(release)
            shown = [str(answer.summary()), repr(answer), answer._repr_html_()]
            if isinstance(answer, reticent.NoReply):
                return
            answer.to_frame()
            self.hold(all(shown), "the client shows nothing", question)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a fault of the client
            self.hold(False, "the client cannot read a release", question, repr(error))

    def _show(self, question: Question, release: Json) -> None:
        """The release's page and files."""
        path = f"/workbench/releases/{release['id']}"
        page = self.send(question.rule, "GET", path)
        self.walked["pages"] += 1
        found = _NOT_SHOWN.search(page.text)
        self.hold(page.status_code == 200, "a page is an error", question, page.text)
        self.hold(found is None, "a page shows what is no number", question, found)
        for form in formats():
            file = self.send(question.rule, "GET", f"{path}/export/{form}")
            self.walked["exports"] += 1
            good = file.status_code == 200 and len(file.content) > 0
            if not self.hold(good, "an export is an error", question, f"{form}: {file.text}"):
                continue
            if form == "json":
                self.hold(file.json() == release, "the exported JSON is another", question)
            elif form in {"html", "csv"}:
                text = file.text.replace(",", "><").replace("\n", "<\n>")
                found = _NOT_SHOWN.search(text)
                self.hold(
                    found is None, "an export shows what is no number", question, (form, found)
                )

    def formed(self, question: Question) -> None:
        """The workbench's page with the question in its form, and its forecast."""
        texts = query_texts(question.query) | {
            "epsilon": f"{question.epsilon:g}",
            "delta": f"{DELTA:g}",
        }
        path = f"/workbench/datasets/{question.table}?{urlencode(texts)}"
        page = self.send(question.rule, "GET", path)
        self.walked["pages"] += 1
        self.hold(page.status_code == 200, "a form is an error", question, page.text)

    def read_by_r(self) -> None:
        """The replies that R has not read yet, all in one run of it."""
        if not self.replies:
            return
        file = self.directory / "replies.json"
        file.write_text(json.dumps({str(k): r for k, (_, r) in enumerate(self.replies)}), "utf-8")
        script = ROOT / "tests/support/kinds/shown_in_r.R"
        command = ["Rscript", str(script), str(ROOT / "r"), str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        shown = json.loads(done.stdout) if done.returncode == 0 else {}
        for k, (question, _) in enumerate(self.replies):
            printed = shown.get(str(k), {}).get("printed")
            self.hold(bool(printed), "R cannot read a release", question, done.stderr[-300:])
        self.walked["read by R"] += len(shown)
        self.replies.clear()


@contextmanager
def walking(directory: Path) -> Iterator[Walk]:
    """A server with the walk's tables in an empty directory, and one who asks by each rule."""
    directory.mkdir(exist_ok=True)
    settings = Installation(directory, {}).settings
    prepare(settings)
    for table in TABLES:
        schema, rows = directory / f"{table.name}.yaml", directory / f"{table.name}.csv"
        schema.write_text(table.schema)
        rows.write_text(table.csv())
        load_dataset(settings, table.name, rows, schema, separate="tables of one walk")
    with opened(settings) as services, asyncio.Runner() as loop:
        for table in TABLES:
            services.ledger.set_population_cap(table.name, rule="basic", by="walk", **PLENTY)
            policy = Policy(tiers=("unconditional", "conditional"))
            services.catalog.set_policy(table.name, policy, by="walk")
            if table.is_profiled:
                release_profile(services, table.name, epsilon=4.0)
        walk = Walk(directory, services, loop)
        yield walk
        for client in walk.clients.values():
            loop.run(client.aclose())


def _signed_in(loop: asyncio.Runner, application: Any, key: str) -> httpx.AsyncClient:
    """With the key, and a session of the workbench."""
    client = httpx.AsyncClient(
        transport=httpx.ASGITransport(application),
        base_url="http://127.0.0.1",
        headers={"Authorization": f"Bearer {key}"},
        timeout=None,
    )
    page = loop.run(client.get("/workbench/sign-in")).text
    token = re.search(r'name="form_token" value="([0-9a-f]+)"', page)
    assert token
    form = {"form_token": token[1], "key": key}
    assert loop.run(client.post("/workbench/sign-in", data=form)).status_code == 303
    return client


def numbers(value: Any) -> Iterator[float]:
    """All numbers of a document that are amounts, widths or estimates."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from numbers(each) if name not in _NO_AMOUNTS else ()
    elif isinstance(value, list):
        for each in value:
            yield from numbers(each)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value


def sentinels(document: Json) -> list[float]:
    """Its numbers that stand for something else; the question's own are left out."""
    asked = set(numbers(document["query"]))
    return [
        each
        for each in numbers({k: v for k, v in document.items() if k != "query"})
        if each not in asked
        and (
            not isfinite(each)
            or abs(each) >= LEAST_SENTINEL
            or any(abs(each / sentinel - 1) < 1e-9 for sentinel in SENTINELS)
        )
    ]


_WORDS = re.compile(r"[A-Za-z_]+")
_SUBJECT = re.compile(r"([a-z_]+)(?: and ([a-z_]+))? must")
_ELSE = frozenset({"epsilon", "delta", "formula", "condition", "features", "response", "terms"})
"""Parts of a request that are no field of a question."""


def names_a_part(said: str, question: Question, interface: Interface) -> bool:
    """Whether a refusal names a field of the question, by its name or a word of it, in the singular
    or the plural; a word that a field enumerates, a column, or a part of what is offered. Where it
    says what something must be, that is a field of this kind."""
    kind = question.query["kind"]
    fields = interface.names(kind)
    parts = {part for name in fields for part in (name, *name.split("_"))}
    parts |= {f"{part}s" for part in parts} | {part.removesuffix("s") for part in parts}
    columns = set(_WORDS.findall(json.dumps(question.query))) & set(NAMES)
    words = _WORDS.findall(said)
    named = {each.lower() for each in words} & (parts | _ELSE | interface.choices(kind))
    subject = _SUBJECT.match(said)
    own = subject is None or {each for each in subject.groups() if each} <= parts | _ELSE
    return own and bool(named or columns & set(words))
