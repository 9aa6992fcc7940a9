# SPDX-License-Identifier: Apache-2.0
"""What was paid for is shown: every number that a kind's release holds stands on its page, in each
file and in R, with its flags.

A new kind is held to this by its examples. Numbers of an estimate that is not identifiable are left
out: they are blank.
"""

import csv
import html
import json
import re
import subprocess
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reticent_server import workbench
from reticent_server.web.layout import IDENTIFIABLE, laid_out
from reticent_server.web.site import templates
from reticent_server.web.tables import shown, text
from reticent_server.workbench.exports import EXPORTS, formats
from support.attacks.seeded_noise import seed_noise
from support.documents.code_blocks import ROOT
from support.installations.small import Api, Installation, copied, opened, request_body
from support.kinds.examples import QUERIES
from support.processes import latex, r_language

EXAMPLES = list(QUERIES)
EPSILON = 10.0
TRIALS = 20  # of a question that may have No Reply: the seed then gives one
BLANKED = ("standard_error", "p_value", "confidence_interval", "statistic")
WORKBENCH = Path(workbench.__file__).parent / "templates"
TEXTS = sorted({"markdown", "html", "latex"} & formats().keys())
_DIGITS = re.compile(r"[-\N{MINUS SIGN}]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+\N{MINUS SIGN}]?\d+)?")


@pytest.fixture(scope="module")
def releases(
    installation_template: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Any]]:
    """A release of every example, by its name, when it is looked at; the noise of each is the same
    in each run.
    """
    directory = tmp_path_factory.mktemp("shown") / "installation"
    with copied(installation_template, directory) as own, opened(own.settings) as services:
        services.ledger.set_population_cap("people", epsilon=1e6, delta=0.5, rule="basic", by="t")
        yield Releases(Api(services, own.analyst("rich", epsilon=9e5, delta=0.4)))


class Releases(dict[str, Any]):
    """Asks for what it is asked for."""

    def __init__(self, api: Api) -> None:
        super().__init__()
        self._api = api

    def __missing__(self, name: str) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            seed_noise(patch, f"every number is shown: {name}")
            self[name] = answered(self._api, QUERIES[name])
        return self[name]


def answered(api: Api, query: dict[str, Any]) -> dict[str, Any]:
    """A release with a reply where one comes; else the last one."""
    for _ in range(TRIALS):
        release: dict[str, Any] = api.post(
            "/v1/releases", request_body(query, epsilon=EPSILON)
        ).json()
        if release["status"] == "reply":
            break
    return release


def numbers(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """(field, number): all that a result holds, but for what is blank where something is not
    identifiable.
    """
    if isinstance(value, dict):
        for key, each in value.items():
            yield from numbers(kept(value, key, each), key)
    elif isinstance(value, list):
        for each in value:
            yield from numbers(each, name)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield name, value


def kept(record: dict[str, Any], name: str, value: Any) -> Any:
    """What is not blank of a field."""
    flag = record.get("estimable")
    if flag is None or not any(part in name for part in BLANKED):
        return value
    if isinstance(flag, list):
        if not isinstance(value, list) or len(value) != len(flag):
            return value
        return [v for v, ok in zip(value, flag, strict=True) if ok]
    return value if flag else None


def as_said(name: str, value: float) -> str:
    return ("< 0.001" if value < 0.001 else f"{value:.3f}") if "p_value" in name else text(value)


def flags(result: Any) -> int:
    """How many estimates of a result are not identifiable."""
    if isinstance(result, dict):
        own = result.get("estimable")
        here = own.count(False) if isinstance(own, list) else int(own is False)
        return here + sum(flags(v) for k, v in result.items() if k != "estimable")
    return sum(map(flags, result)) if isinstance(result, list) else 0


def replied(releases: dict[str, Any], name: str) -> dict[str, Any]:
    release: dict[str, Any] = releases[name]
    if release["status"] == "no_reply":
        assert release["result"] is None
    return release


@pytest.mark.audit
def test_nearly_every_example_has_a_reply(releases: dict[str, Any]) -> None:
    """So that the tests below say something of every kind."""
    for name in EXAMPLES:
        _ = releases[name]
    answered_kinds = {r["query"]["kind"] for r in releases.values() if r["status"] == "reply"}
    assert answered_kinds == {query["kind"] for query in QUERIES.values()}
    assert sum(r["status"] != "reply" for r in releases.values()) <= 5
    assert any(flags(r["result"]) for r in releases.values())


@pytest.mark.sample(48)
@pytest.mark.parametrize("name", EXAMPLES)
def test_a_page_shows_every_number(releases: dict[str, Any], name: str) -> None:
    release = replied(releases, name)
    if release["result"] is None:
        return
    result = shown(release["result"])
    said = {v for _, v in (*result.facts, *result.more)}
    said |= {
        cell for table in result.tables for row in table.rows for cell in (*row.labels, *row.cells)
    }
    parts = (
        said
        | {end for each in said for end in each.split(" to ")}
        | {*_DIGITS.findall(" ".join(said))}
    )
    missing = [(k, v) for k, v in numbers(release["result"]) if as_said(k, v) not in parts]
    assert missing == []
    assert sum(table.left_out for table in result.tables) == 0
    flagged = sum(
        c == "no"
        for t in result.tables
        for r in t.rows
        for h, c in zip(t.heads[len(r.labels) :], r.cells, strict=True)
        if h == IDENTIFIABLE
    )
    assert flagged + dict(result.facts).get(IDENTIFIABLE, "").count("no") == flags(
        release["result"]
    )
    for warning in release["result"].get("warnings", ()):
        assert warning in result.notes


@pytest.mark.slow
@pytest.mark.sample(48)
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_page_s_markup_holds_every_cell(releases: dict[str, Any], name: str) -> None:
    release = replied(releases, name)
    if release["result"] is None:
        return
    result = shown(release["result"])
    source = '{% import "_results.html" as results %}{{ results.result_tables(result) }}'
    page = templates(WORKBENCH).from_string(source).render(result=result)
    plain = {html.unescape(each).strip() for each in re.sub(r"<[^>]*>", "\0", page).split("\0")}
    cells = {c for t in result.tables for row in t.rows for c in (*row.labels, *row.cells)} - {"no"}
    assert {*cells, *(said for _, said in (*result.facts, *result.more)), *result.notes} - {
        ""
    } <= plain
    assert page.count("no: do not interpret") == sum(
        r.cells.count("no") for t in result.tables if IDENTIFIABLE in t.heads for r in t.rows
    )


@pytest.mark.sample(24)
@pytest.mark.parametrize("name", EXAMPLES)
def test_csv_holds_every_number_with_all_its_digits(releases: dict[str, Any], name: str) -> None:
    release = replied(releases, name)
    written = EXPORTS["csv"].write(release, "http://test").decode()
    cells = [cell for row in csv.reader(written.splitlines()) for cell in row]
    found = {float(cell) for cell in cells if _is_number(cell)}
    labelled = {float(each) for cell in cells for each in _DIGITS.findall(cell) if _is_number(each)}
    missing = [pair for pair in numbers(release["result"]) if pair[1] not in found | labelled]
    assert missing == []
    assert not any("\N{MINUS SIGN}" in cell or cell.startswith("<") for cell in cells)
    assert cells.count("no") >= flags(release["result"])


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


@pytest.mark.sample(48)
@pytest.mark.parametrize("form", TEXTS)
@pytest.mark.parametrize("name", EXAMPLES)
def test_a_document_shows_every_number(releases: dict[str, Any], name: str, form: str) -> None:
    release = replied(releases, name)
    written = EXPORTS[form].write(release, "http://test").decode()
    plain = html.unescape(written).replace("$-$", "\N{MINUS SIGN}").replace("\\", "")
    plain = plain.replace("$<$", "<")
    said = {*_DIGITS.findall(plain)} | ({"< 0.001"} if "< 0.001" in plain else set())
    missing = [(k, v) for k, v in numbers(release["result"]) if as_said(k, v) not in said]
    assert missing == []


@pytest.mark.slow
@pytest.mark.parametrize("step", [40, pytest.param(1, marks=pytest.mark.audit)])
def test_pdflatex_reads_documents(releases: dict[str, Any], tmp_path: Path, step: int) -> None:
    """One in `step` of the examples, all in one document."""
    written = [EXPORTS["latex"].write(releases[name], "http://test") for name in EXAMPLES[::step]]
    latex.compiled("\n\\clearpage\n".join(each.decode() for each in written), tmp_path)


@pytest.mark.sample(24)
@pytest.mark.parametrize("name", EXAMPLES)
def test_json_is_the_release(releases: dict[str, Any], name: str) -> None:
    assert json.loads(EXPORTS["json"].write(releases[name], "http://test")) == releases[name]


@pytest.fixture(scope="module")
def in_r(
    releases: dict[str, Any],
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> dict[str, Any]:
    """What the R package shows of each release with a reply, of those that this run asks about."""
    r_language.need()
    asked = [
        item.callspec.params["name"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and "in_r" in item.fixturenames
    ]
    made = {name: releases[name] for name in asked}
    file = tmp_path_factory.mktemp("r") / "releases.json"
    file.write_text(json.dumps({k: r for k, r in made.items() if r["status"] == "reply"}), "utf-8")
    script = ROOT / "tests/support/kinds/shown_in_r.R"
    done = subprocess.run(
        ["Rscript", str(script), str(ROOT / "r"), str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    shown_there: dict[str, Any] = json.loads(done.stdout)
    return shown_there


@pytest.mark.slow
@pytest.mark.sample(24)
@pytest.mark.parametrize("name", EXAMPLES)
def test_r_has_every_number_with_its_flags(
    releases: dict[str, Any], in_r: dict[str, Any], name: str
) -> None:
    """In its data frames; a release without a print of its own, as a fit has, prints those that are
    not for programs, too.
    """
    if name not in in_r:
        assert releases[name]["status"] == "no_reply"
        return
    result, found = releases[name]["result"], in_r[name]
    cells = [cell for table in found["tables"] for column in table for cell in _cells(column)]
    held = [
        float(d.replace(",", "") if isinstance(d, str) else d)
        for c in cells
        for d in (_DIGITS.findall(c) if isinstance(c, str) else [c])
    ]
    held.sort()
    missing = [(k, v) for k, v in numbers(result) if not _near(held, v, 1e-9)]
    assert missing == []
    assert found["lost"] == flags(result)
    if not found["own"]:
        printed = sorted(float(d.replace(",", "")) for d in _DIGITS.findall(found["printed"]))
        tables = [table for table in laid_out(result).tables if not table.aside]
        main = [v for t in tables for c in t.columns.values() for v in numbers(list(c))]
        assert [v for v in main if not _near(printed, v[1], 1e-4)] == []
        assert ("Do not interpret" in found["printed"]) >= (
            flags(result) > 0 and "estimable" not in result
        )
    for warning in result.get("warnings", ()) if not found["own"] else ():
        assert " ".join(warning.split()) in " ".join(found["printed"].split())


def _cells(column: Any) -> list[Any]:
    return [
        c
        for c in (column if isinstance(column, list) else [column])
        if c is not None and not isinstance(c, bool)
    ]


def _near(held: list[float], value: float, part: float) -> bool:
    """Whether a sorted list has a number that differs by less than a part of it."""
    at = bisect_left(held, value)
    return any(abs(each - value) <= part * abs(value) for each in held[max(at - 1, 0) : at + 1])
