# SPDX-License-Identifier: Apache-2.0
"""A curator's file by bare requests: who may send and see it, what is kept of it, and what is said
to whom.
"""

import io
import logging
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xlsxwriter

from reticent_server.domain.facts import Policy
from reticent_server.domain.roles import Role
from reticent_server.domain.schema import MAX_COLUMNS
from reticent_server.errors import NotFound
from reticent_server.intake import cell, looking, staged
from reticent_server.intake.staged import sweep
from reticent_server.ledger.model import population_account
from reticent_server.vault.staging import KEPT_SECONDS, MOST
from support.installations.console import HOSTILE, Desk, History, console
from support.intake.forked_cells import forked_cells
from support.tables.files import GERMAN

SECRET = "Zanzibar-cell"
"""A text of a private cell, to be found where it must not be."""

CSV = f"education-num, town, rich\n13, {SECRET}, yes\n9, Ghent, no\n16, Bruges, yes\n"
GOOD = {
    "dataset": "towns",
    "description": "Towns",
    "separate": "these tests load one file again and again",
    "unit": "",
    "c0.use": "yes",
    "c0.name": "years",
    "c0.kind": "integer",
    "c0.lower": "0",
    "c0.upper": "15",
    "c1.use": "yes",
    "c1.name": "town",
    "c1.kind": "categorical",
    "c1.levels": "coast = Ghent | Bruges",
    "c1.other": "elsewhere",
    "c2.use": "yes",
    "c2.name": "rich",
    "c2.kind": "boolean",
    "action": "load",
}


@pytest.fixture(autouse=True)
def _fast_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    forked_cells(monkeypatch)


@pytest.fixture(scope="module")
def desk(history: History, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """One for all of these tests: each uses names of its own."""
    place = tmp_path_factory.mktemp("tables")
    copied = history.copied(place / "desk")
    sources = place / "sources"
    for name in ("towns", "empty"):
        (sources / name).mkdir(parents=True)
    (sources / "towns" / "part-1.parquet").write_bytes(parquet())
    (place / "elsewhere").mkdir()
    (place / "elsewhere" / "b.parquet").write_bytes(parquet())
    (sources / "link").symlink_to(place / "elsewhere")
    # each test enters anew: more often in a minute than a person may
    changed = {"sources_folder": sources, "sign_ins_per_minute": 10**6}
    settings = copied.installation.settings.model_copy(update=changed)
    with console(copied, lambda _: settings, reads=True) as desk:
        yield desk


@pytest.fixture
def web(desk: Desk) -> Iterator[httpx.Client]:
    with closing(entered(desk, desk.key)) as client:
        yield client
    shutil.rmtree(folder(desk), ignore_errors=True)


@pytest.fixture
def others() -> Iterator[ExitStack]:
    """Closes the browsers of other people."""
    with ExitStack() as stack:
        yield stack


def entered(desk: Desk, key: str) -> httpx.Client:
    client = httpx.Client(base_url=desk.url, timeout=600)
    page = client.get("/console/sign-in")
    client.post("/console/sign-in", data={"form_token": token(page), "key": key})
    return client


def token(reply: httpx.Response) -> str:
    found = re.search(r'name="form_token" value="([0-9a-f]{96})"', reply.text)
    assert found, reply.text
    return found[1]


def send(web: httpx.Client, content: str | bytes = CSV, name: str = "towns.data") -> httpx.Response:
    form = {"form_token": token(web.get("/console/"))}
    data = content.encode() if isinstance(content, str) else content
    return web.post("/console/tables", data=form, files={"file": (name, data)})


def sent(web: httpx.Client, content: str | bytes = CSV, name: str = "towns.data") -> str:
    reply = send(web, content, name)
    assert reply.status_code == 303, reply.text
    return reply.headers["location"]


def edit(web: httpx.Client, place: str, fields: dict[str, str]) -> httpx.Response:
    return web.post(place, data={"form_token": token(web.get("/console/"))} | fields)


def accepted(web: httpx.Client, place: str, name: str = "towns") -> httpx.Response:
    """The schema's form, once what was understood is right."""
    reply = edit(web, place, {"dataset": name, "action": "accept"})
    assert reply.status_code == 303, reply.text
    return web.get(place)


def folder(desk: Desk) -> Path:
    return Path(desk.services.settings.vault_url.removeprefix("sqlite:///") + ".staging")


def files(desk: Desk) -> list[Path]:
    return [each for each in folder(desk).rglob("*") if each.is_file()]


@pytest.mark.slow
def test_a_file_becomes_a_data_set(
    desk: Desk,
    web: httpx.Client,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    place = sent(web)
    page = web.get(place)
    assert (page.status_code, page.headers["cache-control"]) == (200, "no-store")
    assert SECRET in page.text
    assert (
        'value="education_num"' in accepted(web, place).text
    )  # proposed, as the command line proposes it
    assert {each.stat().st_mode & 0o777 for each in files(desk)} == {0o600}
    checked = edit(web, place, GOOD | {"action": "check"})
    assert "The schema is complete" in checked.text
    loaded = edit(web, place, GOOD)
    assert loaded.status_code == 201
    assert re.search(r"years</th><td[^>]*>1</td>", loaded.text)  # 16 is above 15
    facts = desk.services.catalog.facts("towns")
    assert (facts.n, facts.version, facts.population) == (3, 1, "towns")
    assert [c.name for c in facts.schema.columns] == ["years", "town", "rich"]
    assert facts.schema.columns[1].levels == ("coast", "elsewhere")
    assert (files(desk), web.get(place).status_code) == ([], 404)
    last = desk.services.ledger.search(["dataset.load"], before=None, limit=1)[0]
    assert last.draft.actor == "console:carol"
    assert desk.services.ledger.verify() == []
    said = capfd.readouterr()
    assert desk.events
    assert SECRET not in caplog.text + said.out + said.err + str(desk.events)
    assert SECRET not in str([e.draft for e in desk.services.ledger.entries(limit=100)])
    for path in ("/console/", "/console/datasets/towns", "/console/ledger", "/console/tables"):
        assert SECRET not in web.get(path).text


@pytest.mark.slow
def test_only_whoever_sent_it_sees_it(desk: Desk, web: httpx.Client, others: ExitStack) -> None:
    """Another curator: as if there were none. An auditor and a budget officer: not for their roles.
    An analyst: out.
    """
    place = sent(web)
    access = desk.services.access
    key = access.add_curator("dora", frozenset({Role.CURATOR}), by="t")
    other = others.enter_context(closing(entered(desk, key)))
    looked = other.get(place)
    assert (looked.status_code, SECRET in looked.text) == (404, False)
    assert place.rpartition("/")[2] not in other.get("/console/tables").text
    for action in ("load", "check", "discard"):
        assert edit(other, place, GOOD | {"action": action}).status_code == 404
    assert edit(other, f"{place}/draft", GOOD).status_code == 404
    roles = frozenset({Role.AUDITOR, Role.BUDGET_OFFICER})
    key = access.add_curator("otto", roles, by="t")
    auditor = others.enter_context(closing(entered(desk, key)))
    for path in ("/console/tables", place):
        reply = auditor.get(path)
        assert (reply.status_code, SECRET in reply.text) == (403, False)
    assert send(auditor).status_code == 403
    assert edit(auditor, place, GOOD).status_code == 403
    assert "/console/tables" not in auditor.get("/console/").text
    with httpx.Client(base_url=desk.url) as nobody:
        assert nobody.get(place).status_code == 303
        assert nobody.post("/console/tables", files={"file": ("a.csv", CSV)}).status_code == 303
    assert SECRET in web.get(place).text  # and it is still there


def test_a_file_needs_the_token_of_its_form(desk: Desk, web: httpx.Client) -> None:
    data = {"file": ("towns.csv", CSV)}
    assert web.post("/console/tables", files=data).status_code == 403
    ours = {"form_token": token(web.get("/console/"))}
    elsewhere = {"Origin": "https://evil.test"}
    assert web.post("/console/tables", data=ours, files=data, headers=elsewhere).status_code == 403
    assert files(desk) == []
    assert web.post("/console/tables", data=ours, files=data).status_code == 303
    assert web.post("/console/tables", data=ours, files=data).status_code == 409
    assert len(files(desk)) == 2  # the file and its state
    place = sent(web)
    assert web.post(place, data=GOOD).status_code == 403
    assert web.post(f"{place}/draft", data=GOOD).status_code == 403


@pytest.mark.slow
def test_what_is_wrong_stands_beside_its_column_and_nothing_is_lost(web: httpx.Client) -> None:
    place = sent(web)
    wrong = {"c0.lower": "abc", "c1.levels": "", "c2.true": "yes", "description": "kept <b>"}
    reply = edit(web, place, GOOD | wrong)
    assert reply.status_code == 422
    beside = re.findall(r'id="c(\d)-error">([^<]*)', reply.text)
    assert [i for i, _ in beside] == ["0", "1", "2"]
    assert "lower must be a number" in beside[0][1]
    assert "levels" in beside[1][1]
    assert "both `true` and `false`" in beside[2][1]
    for kept in ('value="abc"', 'value="kept &lt;b&gt;"', 'value="elsewhere"', 'value="towns"'):
        assert kept in reply.text
    assert 'value="abc"' in web.get(place).text  # and tomorrow
    twice = edit(web, place, GOOD | {"c2.name": "town"})
    assert "Another column is called town" in twice.text


@pytest.mark.slow
def test_a_cell_that_does_not_fit_is_named_to_the_curator_alone(
    desk: Desk, web: httpx.Client, capfd: pytest.CaptureFixture[str]
) -> None:
    place = sent(web)
    head = desk.services.ledger.head()
    reply = edit(
        web, place, GOOD | {"dataset": "whole", "c1.other": "", "c1.levels": "Ghent\nBruges"}
    )
    assert reply.status_code == 422
    assert "row 1 (line 2), column town" in reply.text
    assert SECRET in reply.text
    assert desk.services.ledger.head() == head  # nothing half done
    with pytest.raises(NotFound):
        desk.services.catalog.facts("whole")
    said = capfd.readouterr()
    assert SECRET not in said.out + said.err + str(desk.events)
    assert edit(web, place, GOOD | {"dataset": "whole"}).status_code == 201


@pytest.mark.slow
def test_a_bad_name_and_another_population_are_refused_with_all_kept(web: httpx.Client) -> None:
    place = sent(web)
    for fields in ({"dataset": "a b"}, {"dataset": ""}, {"dataset": "people", "population": "x"}):
        reply = edit(web, place, GOOD | fields)
        assert (reply.status_code, "Not done." in reply.text) == (422, True)
        assert "coast = Ghent | Bruges" in reply.text


def test_markup_in_a_file_stays_text(web: httpx.Client) -> None:
    cell = HOSTILE.replace('"', '""')
    place = sent(web, f'"{cell}",b\n"{cell}",1\n', "<img src=x>.csv")
    for reply in (
        web.get(place),
        edit(web, place, {"dataset": HOSTILE}),
        web.get("/console/tables"),
    ):
        assert "<img src=x" not in reply.text
        assert "<script>document" not in reply.text
    assert "&lt;img src=x" in web.get(place).text


@pytest.mark.slow
def test_four_eyes(desk: Desk, web: httpx.Client) -> None:
    """Where the policy asks for a second person, the load waits, and the file with it."""
    desk.services.catalog.set_policy("people", Policy(second_person=True), by="t")
    place = sent(web)
    wanted = GOOD | {"dataset": "pairs", "population": "people"}
    reply = edit(web, place, wanted)
    assert (reply.status_code, "Waiting for a second person" in reply.text) == (409, True)
    (proposal,) = desk.services.approvals.all()
    shown = web.get("/console/proposals").text
    assert "schema of 3 columns" in shown
    for part in ("name: years", "kind: integer", "column: –; max_rows: 1", "[Ghent, 0.0]"):
        assert part in shown  # whoever approves sees all of it
    desk.services.approvals.approve(proposal.id, by="key:dora")
    assert edit(web, place, wanted).status_code == 201
    assert desk.services.catalog.facts("pairs").population == "people"
    alone = edit(web, "/console/datasets/people/policy", {"tier-unconditional": "yes"})
    assert (alone.status_code, "Waiting for a second person" in alone.text) == (409, True)
    assert desk.services.catalog.facts("people").policy.second_person
    desk.services.catalog.set_policy("people", Policy(), by="t")  # of new populations, too


@pytest.mark.slow
def test_files_have_limits_and_are_forgotten(
    desk: Desk, web: httpx.Client, others: ExitStack
) -> None:
    places = [sent(web, name=f"../../x{i}.csv") for i in range(MOST)]
    assert {each.parent.parent.name for each in files(desk)} == {"vault.db.staging"}
    full = send(web)
    assert (full.status_code, "wait already" in full.text) == (409, True)
    assert edit(web, places[0], {"action": "discard"}).status_code == 303
    assert web.get(places[0]).status_code == 404
    services = desk.services
    desk.clock.sleep(KEPT_SECONDS / 2)
    web = others.enter_context(closing(entered(desk, desk.key)))
    edit(web, f"{places[1]}/draft", GOOD)
    desk.clock.sleep(KEPT_SECONDS / 2 + 1)
    sweep(services.settings, desk.clock)
    web = others.enter_context(closing(entered(desk, desk.key)))
    assert [web.get(place).status_code for place in places[1:]] == [200, 404, 404]
    assert 'value="years"' in web.get(places[1]).text  # the draft


@pytest.mark.slow
def test_what_is_no_table_is_said_so(web: httpx.Client) -> None:
    for content in ("", "a,b\n", "a,b\n1\n", b"PAR1 broken", b"\xff\xfe\n1"):
        reply = send(web, content)
        if reply.status_code == 303:
            reply = web.get(reply.headers["location"])
            assert edit(web, str(reply.url.path), {"action": "discard"}).status_code == 303
        assert reply.status_code == 422
        assert 'role="alert"' in reply.text
    place = sent(web, parquet())
    assert "2.5" in web.get(place).text


@pytest.mark.slow
def test_a_file_that_would_take_the_memory_is_refused_in_a_sentence(
    desk: Desk,
    web: httpx.Client,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It stays where it is, unloaded, and can be given up. 100 MB of text against 64 MB of memory,
    in a real cell.
    """
    monkeypatch.setattr(cell, "subprocess", subprocess)
    small = replace(looking.LIMITS, memory=64 << 20)
    monkeypatch.setattr(staged, "looked", partial(looking.looked, limits=small))
    written = io.BytesIO()
    texts = pa.table({"t": [SECRET * 50_000] * 160})
    pq.write_table(texts, written, compression="zstd", use_dictionary=False)
    place = sent(web, written.getvalue())
    page = web.get(place)
    assert page.status_code == 422
    assert "cannot be read: it is broken, or takes more than 64 MB of memory" in page.text
    assert edit(web, place, GOOD).status_code == 422
    assert web.get("/healthz").status_code == 200
    said = capfd.readouterr()
    assert SECRET not in page.text + caplog.text + said.out + said.err + str(desk.events)
    assert edit(web, place, {"action": "discard"}).status_code == 303
    assert files(desk) == []


@pytest.mark.slow
def test_a_page_of_the_widest_table_is_bounded(web: httpx.Client) -> None:
    names = [f"column {i} " + "x" * 200 for i in range(MAX_COLUMNS)]
    cells = ",".join(["y" * 100] * MAX_COLUMNS)
    place = sent(web, ",".join(names) + "\n" + f"{cells}\n" * 9)
    page = web.get(place)
    assert (page.status_code, len(page.content) < 6 << 20) == (200, True)
    assert edit(web, place, {"action": "discard"}).status_code == 303


def parquet() -> bytes:
    written = io.BytesIO()
    pq.write_table(pa.table({"x": [1.0, 2.5], "when": pa.array([0, 1], pa.date32())}), written)
    return written.getvalue()


@pytest.mark.slow
def test_a_folder_of_files_is_registered_where_it_is(desk: Desk, web: httpx.Client) -> None:
    page = web.get("/console/tables").text
    assert re.findall(r"<option>([^<]*)", page) == ["towns"]
    for name in ("../elsewhere", "link", "empty", "", "/etc"):
        assert edit(web, "/console/tables/folder", {"folder": name}).status_code == 422
    reply = edit(web, "/console/tables/folder", {"folder": "towns"})
    place = reply.headers["location"]
    assert "2.5" in web.get(place).text
    assert [each.name for each in files(desk)] == [".state.json"]
    form = {"dataset": "kept", "c0.use": "yes", "c0.name": "x", "c0.kind": "numeric"}
    form |= {"c0.lower": "0", "c0.upper": "2", "action": "load"}
    refused = edit(web, place, form | {"strict": "yes"})
    assert (refused.status_code, "part-1.parquet: In row 2" in refused.text) == (422, True)
    persons = edit(web, place, form | {"unit": "x", "max_rows": "2"})
    assert (persons.status_code, "use `reticent dataset load`" in persons.text) == (422, True)
    loaded = edit(web, place, form)
    assert (loaded.status_code, "stay where they are" in loaded.text) == (201, True)
    assert desk.services.catalog.facts("kept").n == 2
    source = desk.services.settings.sources_folder
    assert source is not None
    assert (source / "towns" / "part-1.parquet").is_file()
    assert files(desk) == []


def test_a_file_that_is_too_large(history: History, tmp_path: Path) -> None:
    copied = history.copied(tmp_path / "small")

    def small(_: int) -> object:
        return copied.installation.settings.model_copy(update={"upload_bytes": 1000})

    with console(copied, small) as desk, closing(entered(desk, desk.key)) as web:  # type: ignore[arg-type]
        reply = send(web, CSV + "1, x, yes\n" * 200)
        assert (reply.status_code, "at most 1000 bytes" in reply.text) == (413, True)
        assert files(desk) == []
        assert web.get("/console/tables").status_code == 200


@pytest.mark.slow
def test_the_policy_and_the_profile_in_the_console(
    desk: Desk, web: httpx.Client, others: ExitStack
) -> None:
    services = desk.services
    place = sent(web)
    edit(web, place, GOOD | {"dataset": "terms"})
    policy = {"max_epsilon": "2", "tier-unconditional": "yes", "protocol_required": "yes"}
    bad = edit(web, "/console/datasets/terms/policy", {"max_epsilon": "2"})
    assert (bad.status_code, "at least one guarantee" in bad.text) == (422, True)
    assert edit(web, "/console/datasets/terms/policy", policy).status_code == 303
    assert services.catalog.facts("terms").policy == Policy(max_epsilon=2.0, protocol_required=True)
    assert "what an accepted protocol asks" in web.get("/console/datasets/terms").text
    early = edit(web, "/console/datasets/terms/profile", {"epsilon": "1"})
    assert (early.status_code, "Not done." in early.text) == (403, True)
    services.ledger.set_population_cap("terms", epsilon=4, delta=1e-3, by="t")
    before = services.ledger.entries(population_account("terms"), 9)
    expected = edit(web, "/console/datasets/terms/profile", {"epsilon": "1", "forecast": "yes"})
    assert (expected.status_code, "no: fits profile it themselves" in expected.text) == (200, True)
    assert services.ledger.entries(population_account("terms"), 9) == before
    assert services.catalog.facts("terms").profile is None, "a forecast is not a release"
    assert edit(web, "/console/datasets/terms/profile", {"epsilon": "1"}).status_code == 303
    assert services.catalog.facts("terms").profile is not None
    assert "The profile does not resolve" in web.get("/console/datasets/terms").text
    spent = services.ledger.entries(population_account("terms"), 9)
    assert edit(web, "/console/datasets/terms/profile", {"epsilon": "1"}).status_code == 409
    assert services.ledger.entries(population_account("terms"), 9) == spent
    key = services.access.add_curator("olga", frozenset({Role.AUDITOR}), by="t")
    auditor = others.enter_context(closing(entered(desk, key)))
    for form in ("policy", "profile"):
        assert edit(auditor, f"/console/datasets/terms/{form}", policy).status_code == 403
        assert f"terms/{form}" not in auditor.get("/console/datasets/terms").text


@pytest.mark.slow
def test_persons_of_another_population_need_a_reason(desk: Desk, web: httpx.Client) -> None:
    """Only whoever has sent the file is told; the page of the population shows the reason to the
    console alone.
    """
    text = "id,x\n" + "".join(f"person-{i},{i % 5}\n" for i in range(20))
    of_persons = {"unit": "id", "max_rows": "2", "c0.use": "", "c1.use": "yes", "c1.name": "x"}
    of_persons |= {"c1.kind": "integer", "c1.lower": "0", "c1.upper": "9", "action": "load"}
    first = edit(web, sent(web, text), of_persons | {"dataset": "wave-1"})
    assert first.status_code == 201, first.text
    place = sent(web, text + "person-99,3\n")
    again = edit(web, place, of_persons | {"dataset": "wave-2"})
    assert again.status_code == 422
    assert "20 of the table&#39;s persons are in population wave-1, too" in again.text
    joined = edit(web, place, of_persons | {"dataset": "wave-2", "population": "wave-1"})
    assert joined.status_code == 201
    assert "1 persons are left out" in joined.text
    assert desk.services.catalog.facts("wave-2").n == 20
    apart = {"dataset": "wave-3", "separate": "<b>another</b> board"}
    assert edit(web, sent(web, text), of_persons | apart).status_code == 201
    page = web.get("/console/populations/wave-3")
    assert "&lt;b&gt;another&lt;/b&gt; board" in page.text
    assert "the persons of wave-3" in page.text
    assert "/console/populations/wave-1" in web.get("/console/").text
    assert web.get("/console/populations/nobody").status_code == 404


@pytest.mark.slow
def test_what_was_understood_is_shown_changed_and_accepted(desk: Desk, web: httpx.Client) -> None:
    """A spreadsheet's text in Windows-1252, as it is: from the file to the loaded table."""
    place = sent(web, GERMAN.encode("cp1252"), "Klinik 2021.csv")
    page = web.get(place).text
    assert 'name="dataset" autocomplete="off" required value="klinik_2021"' in page
    assert "München" in page
    assert re.search(r'data-name="Missing cells"><code>k.A.</code>', page)
    assert re.findall(r'<option value="([^"]+)" selected', page) == (
        ["csv", "semicolon", "double", "windows-1252", "comma", "point"]
    )
    was = {
        f"was.{key}": value for key, value in re.findall(r'name="was.(\w+)" value="([^"]*)"', page)
    }
    assert web.get("/console/tables").text.count("Klinik_2021.csv") == 1
    nameless = edit(web, place, {"action": "accept", "dataset": ""})
    assert (nameless.status_code, "Name the data set." in nameless.text) == (422, True)
    other = edit(web, place, {"action": "read", "read.separator": "tab"})
    assert (other.status_code, "2 columns" in other.text, "1 columns" in other.text) == (
        200,
        False,
        True,
    )
    back = edit(web, place, {"action": "read", "read.separator": "", **was})
    assert "4 columns, 3 rows" in back.text
    form = accepted(web, place, "klinik").text
    proposed = re.findall(r'name="c[0-3].missing"[^>]*value="([^"]*)"', form)
    assert (len(proposed), len(set(proposed))) == (4, 1)  # whatever stands in the file
    assert "NA | N/A | n/a" in proposed[0]
    assert 'value="%d.%m.%Y"' in form
    assert "separator semicolon, " in form
    assert "Not loaded" not in form
    none = web.get(edit(web, place, {"action": "none", "dataset": "klinik"}).headers["location"])
    assert ("Not loaded (4)" in none.text, "separator semicolon, " in none.text) == (True, True)
    chosen = {
        "dataset": "klinik",
        "separate": "these tests load one file again and again",
        "c0.use": "yes",
        "c0.name": "size",
        "c0.kind": "numeric",
        "c0.lower": "1",
        "c0.upper": "2.2",
        "action": "load",
    }
    assert edit(web, place, chosen).status_code == 201
    facts = desk.services.catalog.facts("klinik")
    assert (facts.n, facts.schema.reading.decimal) == (3, "comma")


def test_a_file_that_cannot_be_read_does_not_wait(web: httpx.Client) -> None:
    places = [sent(web, b"\x1f\x8b packed", f"{k}.csv") for k in range(2)]
    assert "unpack it" in web.get(places[0]).text
    listed = web.get("/console/tables").text
    assert ("0.csv" in listed, "1.csv" in listed) == (False, True)
    mended = edit(web, places[0], {"action": "read", "read.format": "csv"})
    assert mended.status_code == 422  # it is still there, to be read in another way
    sent(web)
    assert web.get(places[0]).status_code == 404  # its place is taken


def sheet(*rows: list[str | int]) -> bytes:
    """An Excel file of one sheet."""
    made = io.BytesIO()
    with xlsxwriter.Workbook(made) as book:
        page = book.add_worksheet("Data")
        for k, cells in enumerate(rows):
            page.write_row(k, 0, cells)
    return made.getvalue()


def test_a_file_whose_library_is_not_installed_waits_for_it(
    web: httpx.Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Formats that cannot be read are not offered, and what was sent is not deleted."""
    offered = '<option value="xlsx"'
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "python_calamine", None)
        (tmp_path / "python_calamine.py").write_text("raise ImportError")
        without.syspath_prepend(tmp_path)
        without.setattr(cell, "subprocess", subprocess)  # an interpreter that finds this one
        listed = web.get("/console/tables").text
        assert "Arrow, SAS, Stata, SPSS, DuckDB." in listed
        assert "Files of Excel need" in listed
        place = sent(web, sheet(["size", "ward"], [3, "a"], [4, "b"]), "wards.xlsx")
        page = web.get(place)
        assert (page.status_code, offered in page.text) == (422, False)
        assert "pip install" in page.text
        assert "once the library is installed, read it again" in page.text
        other = web.get(sent(web)).text
        assert ('value="duckdb"' in other, offered in other) == (True, False)
    assert "wards.xlsx" in web.get("/console/tables").text  # the next file has not taken its place
    page = web.get(place)
    assert (page.status_code, offered in page.text) == (200, True)


@pytest.mark.slow
def test_notes_below_a_sheet_are_asked_about(desk: Desk, web: httpx.Client) -> None:
    rows: list[list[str | int]] = [["size", "ward"], [3, "a"], [4, "b"], [], ["Source: a ward"]]
    place = sent(web, sheet(*rows), "noted.xlsx")
    asked = edit(web, place, {"action": "accept", "dataset": "noted"})
    assert (asked.status_code, "(1 of them, below a blank row)" in asked.text) == (422, True)
    said = {"action": "accept", "dataset": "noted", "read.skip_last": "1"}
    assert edit(web, place, said).status_code == 303
    assert "skip_last 1" in web.get(place).text
    chosen = {
        "dataset": "noted",
        "separate": "these tests load one file again and again",
        "c0.use": "yes",
        "c0.name": "size",
        "c0.kind": "numeric",
        "c0.lower": "1",
        "c0.upper": "9",
        "action": "load",
    }
    assert edit(web, place, chosen).status_code == 201
    facts = desk.services.catalog.facts("noted")
    assert (facts.n, facts.schema.reading.skip_last) == (2, 1)


@pytest.mark.slow
def test_what_must_be_said_is_asked_before(web: httpx.Client) -> None:
    place = sent(web, "d;x\n01/02/2020;1\n03/04/2020;2\n")
    asked = edit(web, place, {"action": "accept", "dataset": "d"})
    assert (asked.status_code, "Dates of d can be read" in asked.text) == (422, True)
    said = {"action": "accept", "dataset": "d", "read.dates": "month-first"}
    assert edit(web, place, said).status_code == 303
    assert 'value="%m/%d/%Y"' in web.get(place).text
