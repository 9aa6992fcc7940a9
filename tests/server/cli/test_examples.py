"""Every example in the command line's help works, as it is written there."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.main import get_command

from reticent_server.cli import COMMANDS, root
from reticent_server.cli.examples import EXAMPLES
from support_houses import write_houses
from support_session import session

ORDER = """
init; dataset schema; dataset load; dataset register; dataset list; dataset show; analyst add;
budget set; dataset profile; dataset policy; budget show; budget credit; analyst list; analyst rotate-key;
curator add; curator list; curator rotate-key; curator sign-out; ledger show; ledger verify; ledger head; ledger export;
serve; dataset retire; analyst revoke; curator revoke
"""


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


def test_every_example_works(tmp_path: Path) -> None:
    order = [name.strip() for name in ORDER.split(";")]
    assert sorted([*order, "demo"]) == sorted(EXAMPLES)
    write_houses(tmp_path / "houses.csv", tmp_path / "complete.yaml", rows=300)
    (tmp_path / "sales").mkdir()
    table = pa.table({"amount": np.arange(50.0), "kind": ["a", "b"] * 25})
    pq.write_table(table, tmp_path / "sales/part.parquet")
    columns = (
        "{amount: {kind: numeric, lower: 0, upper: 50}, kind: {kind: categorical, levels: [a, b]}}"
    )
    (tmp_path / "sales.yaml").write_text(f"columns: {columns}\n")
    with session(tmp_path) as terminal:
        for name in order:
            if name == "budget credit":  # there must be something to credit: the profile has spent
                assert "houses" in terminal.shell("reticent budget show")
            for line in EXAMPLES[name]:
                terminal.shell(line)
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
