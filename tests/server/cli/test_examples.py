# SPDX-License-Identifier: Apache-2.0
"""Every example in the command line's help works, as it is written there."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.main import get_command

from reticent_server.chain.anchors import Anchor, Anchors
from reticent_server.cli import COMMANDS, root
from reticent_server.cli.examples import EXAMPLES
from reticent_server.domain.principal import Principal
from reticent_server.domain.query import Privacy
from reticent_server.domain.roles import STAFF, Role
from reticent_server.errors import SecondPerson
from reticent_server.kinds.count.kind import Count
from reticent_server.pipeline.answer import answer
from reticent_server.pipeline.ask import Ask
from reticent_server.settings import Settings
from support.documents.session import session
from support.installations.small import opened
from support.tables.houses import write_houses

ORDER = """
init; dataset schema; dataset load; dataset register; population add; population widen; population
renew; population list; population show; dataset append; dataset link; dataset list; dataset
check; dataset show; analyst add; budget set; dataset profile; dataset publish; dataset policy;
budget show; budget credit; analyst list; analyst link; analyst unlink; analyst rotate-key;
curator add; curator link; curator unlink; curator roles; curator list; curator rotate-key;
curator sign-out; project requests; project list; project approve; project refuse; project remove;
project close; proposal list; proposal approve; proposal refuse; protocol check; protocol accept;
protocol list; protocol withdraw; ledger show; ledger verify; ledger head; ledger export; certify;
serve; secrets show; secrets rotate-pepper; secrets retire; budget freeze; dataset retire; analyst
revoke; curator revoke; ledger accept-rollback
"""


IDS = re.compile(r"(rq|ap|rel)_\w+|[0-9a-f]{64}")
"""What stands in examples for what is known only when they are tried."""


def test_every_command_has_an_example() -> None:
    commands = []
    for name, command in COMMANDS.items():
        group = (
            next(g for g in root([name]).registered_groups if g.name == name)
            if command.group
            else None
        )
        if group is None:
            commands.append(name)
            continue
        assert group.typer_instance is not None
        for each in group.typer_instance.registered_commands:
            assert each.epilog
            own = each.name or getattr(each.callback, "__name__", "").replace("_", "-")
            commands.append(f"{name} {own}")
    assert sorted(commands) == sorted(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_command_takes_json(name: str) -> None:
    command: Any = get_command(root(name.split()))
    for word in name.split():
        command = command.commands[word]
    assert "--json" in {option for each in command.params for option in each.opts}


def settings_in(place: Path) -> Settings:
    return Settings(
        database_url=f"sqlite:///{place / 'reticent.db'}",
        vault_url=f"sqlite:///{place / 'reticent-vault.db'}",
        secrets_file=place / "reticent-secrets.json",
    )


def propose(place: Path) -> list[str]:
    """The ids of two proposals, for the lines that name one; olga, who decides them, has a key in a
    file.
    """
    ids = []
    with opened(settings_in(place)) as services:
        (place / "olga").write_text(services.access.add_curator("olga", STAFF, by="t"))
        for number in range(2):
            with pytest.raises(SecondPerson) as needed:
                services.approvals.take("cap", "houses", {"n": number}, by="console:carol")
            ids.append(needed.value.proposal_id)
    return ids


def a_release(place: Path) -> list[str]:
    """The id of an answer that ada has got."""
    with opened(settings_in(place)) as services:
        ada = services.access.analyst("ada")
        ask = Ask("houses", Count(), Privacy(0.1))
        principal = Principal(ada.id, "ada", frozenset({Role.ANALYST}))
        return [json.loads(answer(services, principal, ask))["id"]]


def file_requests(place: Path) -> list[str]:
    """The ids of requests by ada, for the lines of the examples that name one."""
    share = {"dataset": "houses", "epsilon": 2.0, "delta": 1e-6}
    document = {"purpose": "Prices", "members": [], "ends_on": None, "budgets": [share], "plan": []}
    with opened(settings_in(place)) as services:
        ada = services.access.analyst("ada")
        wishes = [document | {"name": name} for name in ("trial", "second", "third")]
        return [services.requests.make(ada.id, wish).id for wish in wishes]


def write_protocol(place: Path) -> list[str]:
    """A protocol about the houses of two sites, in the place's folder."""
    document = {
        "protocol": 1,
        "study": {"variables": ["price", "grade"]},
        "epsilon": 0.5,
        "columns": {"price": {"kind": "numeric"}, "grade": {"kind": "integer"}},
        "sites": {"north": {}, "south": {}},
    }
    (place / "protocol.json").write_text(json.dumps(document))
    return []


def accepted(place: Path) -> list[str]:
    """The digest of the protocol that was accepted."""
    with opened(settings_in(place)) as services:
        return [services.protocols.all()[0].digest]


def lost_anchor(place: Path) -> list[str]:
    """An anchor of an entry that the ledger does not have."""
    Anchors(place / "anchors").write(Anchor(10**6, "a" * 64, "2026"))
    return []


SETTINGS = {
    "proposal list": ("RETICENT_KEY_FILE", "olga"),
    "ledger accept-rollback": ("RETICENT_ANCHOR_FILE", "anchors"),
}
"""A setting, and its file, that holds from a command on."""

FILES = {
    "ledger accept-rollback": lost_anchor,
    "dataset publish": a_release,
    "project requests": file_requests,
    "proposal list": propose,
    "protocol check": write_protocol,
    "protocol withdraw": accepted,
}
"""What must be there before a command's examples, which name it by its id."""


def write_clinic(place: Path) -> None:
    """Two tables about the same persons, and a wave of one of them."""
    kinds = {
        "visits": "bmi: {kind: numeric, lower: 10, upper: 60}",
        "patients": "smokes: {kind: boolean}",
    }
    for (table, column), most in zip(kinds.items(), (4, 1), strict=True):
        unit = f"{{column: patient, max_rows: {most}}}"
        (place / f"{table}.yaml").write_text(f"unit: {unit}\ncolumns: {{{column}}}\n")
    (place / "visits.csv").write_text(
        "patient,bmi\n" + "".join(f"{k % 20},{20 + k % 9}\n" for k in range(40))
    )
    (place / "visits-2026.csv").write_text("patient,bmi\n3,25\n21,24\n")
    (place / "patients.csv").write_text(
        "patient,smokes\n" + "".join(f"{k},{k % 2}\n" for k in range(22))
    )


@pytest.mark.slow
def test_every_example_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order = [" ".join(name.split()) for name in ORDER.split(";")]
    assert sorted([*order, "demo"]) == sorted(EXAMPLES)
    write_houses(tmp_path / "houses.csv", tmp_path / "complete.yaml", rows=300)
    (tmp_path / "sales").mkdir()
    table = pa.table({"amount": np.arange(50.0), "kind": ["a", "b"] * 25})
    pq.write_table(table, tmp_path / "sales/part.parquet")
    columns = (
        "{amount: {kind: numeric, lower: 0, upper: 50}, kind: {kind: categorical, levels: [a, b]}}"
    )
    (tmp_path / "sales.yaml").write_text(f"columns: {columns}\n")
    write_clinic(tmp_path)
    provider = {"OIDC_ISSUER": "https://id.example", "OIDC_CLIENT_ID": "reticent"}
    with session(tmp_path, {f"RETICENT_{n}": v for n, v in provider.items()}) as terminal:
        for name in order:
            if name == "budget credit":  # there must be something to credit: the profile has spent
                assert "houses" in terminal.shell("reticent budget show")
            if name == "dataset append":  # in the population that the example has made
                for table in ("visits", "patients"):
                    terminal.shell(
                        f"reticent dataset load {table} {table}.csv --schema {table}.yaml "
                        "--population clinic --overlap-reason register"
                    )
            if name in SETTINGS:
                setting, file = SETTINGS[name]
                monkeypatch.setenv(setting, str(tmp_path / file))
            if name in FILES:
                waiting = FILES[name](tmp_path)
            for line in EXAMPLES[name]:
                id_of = waiting.pop(0) if IDS.search(line) else ""
                terminal.shell(IDS.sub(id_of, line))
            if name == "proposal refuse":
                monkeypatch.delenv("RETICENT_KEY_FILE")
            if name == "dataset schema":  # the curator fills in the bounds
                assert "lower: , upper: " in (tmp_path / "houses.yaml").read_text()
                shutil.copy(tmp_path / "complete.yaml", tmp_path / "houses.yaml")
        assert (tmp_path / "head.txt").read_text().strip() in (
            tmp_path / "ledger.jsonl"
        ).read_text()


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("reticent ", "ledger"),
        ("reticent dataset lo", "load"),
        ("reticent budget set --an", "--analyst"),
        ("reticent budget set --rule ", "zcdp"),
    ],
)
def test_a_shell_can_complete(
    typed: str, offered: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from reticent_server.cli import main

    words = typed.split()
    at = len(words) if typed.endswith(" ") else len(words) - 1
    for name, value in (
        ("_RETICENT_COMPLETE", "complete_bash"),
        ("COMP_WORDS", "\n".join(words)),
        ("COMP_CWORD", str(at)),
    ):
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit) as ended:
        main([])
    assert (ended.value.code, offered in capsys.readouterr().out.splitlines()) == (0, True)
