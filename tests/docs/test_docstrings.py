# SPDX-License-Identifier: Apache-2.0
"""Every public name of the client shows how it is used, and every example runs."""

import doctest
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

import reticent
from support.documents.code_blocks import prepare
from support.documents.session import session
from support.seeds import seeded_random

mpl.use("Agg")
ADDRESS = "http://127.0.0.1:8000"
EVERY_CALL = (reticent.Dataset, reticent.Client)
"""Classes of which each method has an example of its own."""
CLOSED = {"close"}


def examples() -> dict[str, list[doctest.Example]]:
    """Examples by the name of what they belong to."""
    found: dict[str, list[doctest.Example]] = {"reticent": _examples(reticent)}
    for name in reticent.__all__:
        thing = getattr(reticent, name)
        found[name] = _examples(thing)
        if inspect.isclass(thing):
            for member, value in _methods(thing):
                found[f"{name}.{member}"] = _examples(value)
    return found


def _methods(owner: type) -> Iterator[tuple[str, Any]]:
    for member, value in inspect.getmembers(owner, inspect.isfunction):
        if not member.startswith("_") and member not in {"check", "from_json"}:
            yield member, value


def _examples(thing: Any) -> list[doctest.Example]:
    return doctest.DocTestParser().get_examples(inspect.getdoc(thing) or "")


FOUND = examples()


def test_every_call_of_an_analyst_has_an_example() -> None:
    for owner in EVERY_CALL:
        for member, _ in _methods(owner):
            assert FOUND[f"{owner.__name__}.{member}"] or member in CLOSED, member
    for name in reticent.__all__:
        thing = getattr(reticent, name)
        if inspect.isclass(thing) and issubclass(thing, reticent.Release):
            assert FOUND[name] or thing in {reticent.Release, reticent.NoReply}, name


CLINIC = """\
reticent dataset load clinic clinic.csv --schema clinic.yaml
reticent budget set --dataset clinic --epsilon 100 --delta 1e-4
reticent budget set --dataset clinic --analyst ada --epsilon 50 --delta 1e-5
"""


def write_clinic(place: Path) -> None:
    """Visits, several a person."""
    bounds = {"bmi": (10, 60), "day": (0, 99), "first": (0, 50), "second": (0, 50)}
    kinds = {name: f"{{kind: numeric, lower: {a}, upper: {b}}}" for name, (a, b) in bounds.items()}
    kinds["female"] = "{kind: boolean}"
    columns = "{" + ", ".join(f"{name}: {kind}" for name, kind in kinds.items()) + "}"
    unit = "{column: person, max_rows: 3}"
    (place / "clinic.yaml").write_text(f"unit: {unit}\ncolumns: {columns}\n")
    rng = seeded_random(1)
    rows = []
    for person in range(3000):
        own = rng.gauss(0, 4)
        for day in rng.sample(range(100), 2):
            first = 25 + own + rng.gauss(0, 2)
            cells = (25 + own + 0.1 * day + rng.gauss(0, 2), day, first, first + rng.gauss(1, 2))
            rows.append(",".join(map(str, (person, *cells, person % 2))) + "\n")
    (place / "clinic.csv").write_text("person,bmi,day,first,second,female\n" + "".join(rows))


SITES = """\
import json
variables = ["price", "grade"]
study_a, study_b = ds.study(variables, epsilon=8), ds.study(variables, epsilon=9)
study_a.save("north.json")
study_b.save("south.json")
fit_a, fit_b = ds.ols("price ~ grade", epsilon=1), ds.ols("price ~ grade", epsilon=2)
north = south = ds
columns = {"price": {"kind": "numeric", "bounds": [10_000, 10_000_000]},
           "grade": {"kind": "integer", "bounds": [1, 13]}}
agreed = {"protocol": 1, "title": "Prices", "study": {"variables": variables}, "epsilon": 1.0,
          "delta": 1e-6, "columns": columns, "sites": {"north": {}, "south": {"epsilon": 0.5}}}
with open("protocol.json", "w") as file:
    json.dump(agreed, file)
"""
"""What examples of several sites begin with."""


@pytest.mark.audit
def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(mpl.rcParams, "figure.max_open_warning", 0)
    with session(tmp_path, {"RETICENT_REPLY_GRID_MS": "0"}) as terminal:
        prepare(terminal, "served")
        terminal.names["key"] = terminal.key
        write_clinic(tmp_path)
        terminal.shell(CLINIC)
        terminal.python(SITES)
        terminal.names["fit"] = terminal.names["ds"].linear_regression("price ~ grade", epsilon=1)
        for name, group in FOUND.items():
            for example in group:
                assert not example.options, f"{name} skips an example"
                try:
                    terminal.python(example.source)
                except Exception as error:
                    error.add_note(f"in the docstring of {name}: {example.source}")
                    raise
