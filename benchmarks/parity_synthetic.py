# SPDX-License-Identifier: Apache-2.0
"""Do findings come out the same on synthetic records? `python -m benchmarks.parity_synthetic [TOOL
…]`, beside `python -m benchmarks parity`.

As a user would: the columns of the published model, in the bins that a released profile gives (at
most 8 of a column of numbers); one synthetic table of them at ε = 1 and δ = 1e-6; the model fitted
to it as if its records were real, with sandwich errors, a bin's middle standing for its numbers.
All tools have the same bins. Tools: `synthetic` (ours: every pair, records of the client's extra
`synthetic`), `aim` (OpenDP's, benchmarks/synthetic_aim.py, by the Python AIM_PYTHON, at the same
ρ), `privbayes` (dpmm's, benchmarks/synthetic_dpmm.py, by DPMM_PYTHON), and `binned`: the table's
own records in these bins, without privacy. For the public tools a record is added or removed; for
ours one is replaced.

SYNTHETIC_RUNS (3): tables of a tool. Intervals of synthetic records count neither noise nor the
model's error, so slopes without effect are the column to look at, too.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.accuracy import BenchTable
from benchmarks.named_tests import offer
from benchmarks.parity import LARGE, Findings, ParityRun, ParityShares, published, seeded
from benchmarks.real_tables.fast import numpy_noise
from benchmarks.real_tables.models import read_folder
from benchmarks.real_tables.textbook import textbook
from benchmarks.synthetic import by_aim, codes
from reticent._joint import joint_records
from reticent.kinds.synthetic import SyntheticTables
from reticent_server.domain.cost import RHO_UNITS
from reticent_server.kinds.synthetic.kind import Synthetic

RUNS = int(os.environ.get("SYNTHETIC_RUNS", "3"))
EPSILON = 1.0
_Z = 1.959964  # of a 95 % interval

Codes = Mapping[str, Any]
Tool = Callable[[SyntheticTables, Codes, int], Codes]


def ours(tables: SyntheticTables, rows: Codes, run: int) -> Codes:
    """Records of the graphical model of the released pairs."""
    sizes = {name: len(of.levels) for name, of in tables.columns.items()}
    return joint_records(tables.all_tables, sizes, len(next(iter(rows.values()))), run)


def aim(tables: SyntheticTables, rows: Codes, run: int) -> Codes:  # noqa: ARG001 - its own noise
    """OpenDP's AIM."""
    found = by_aim(dict(rows), offer(EPSILON).rho / RHO_UNITS)
    return {str(name): found[name].to_numpy(int) for name in found}


def privbayes(tables: SyntheticTables, rows: Codes, run: int) -> Codes:  # noqa: ARG001
    """dpmm's PrivBayes."""
    with TemporaryDirectory() as folder:
        given, made = Path(folder) / "codes.csv", Path(folder) / "records.csv"
        pd.DataFrame(rows).to_csv(given, index=False)
        script = Path(__file__).parent / "synthetic_dpmm.py"
        words = [os.environ["DPMM_PYTHON"], str(script), str(given), str(EPSILON), str(run)]
        own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        subprocess.run([*words, str(made)], check=True, env=own)
        found = pd.read_csv(made)
    return {str(name): found[name].to_numpy(int) for name in found}


def binned(tables: SyntheticTables, rows: Codes, run: int) -> Codes:  # noqa: ARG001
    """The table itself, in bins."""
    return rows


TOOLS: dict[str, Tool] = {
    "binned": binned,
    "synthetic": ours,
    "aim": aim,
    "privbayes": privbayes,
}


def scored(findings: Findings, tool: Tool, run: int) -> ParityRun:
    """Of one synthetic table."""
    model, frame = findings.model, findings.frame
    with numpy_noise(seeded(model, run), on=True):
        whole = frame.rows(np.arange(frame.n))
        names = whole.plan(model.query, EPSILON).planned.ground.coding.design.columns
        question = Synthetic(tuple(name for name in frame.columns if name in set(names)))
        result = whole.release(whole.plan(question, EPSILON))
    whole.close()
    tables = SyntheticTables({"query": {"kind": "synthetic"}, "result": result})
    records = tool(tables, codes(tables, whole.arrays), run)
    return findings.score(_ends(findings, whole, _values(tables, records)))


def _values(tables: SyntheticTables, records: Codes) -> dict[str, Any]:
    """Of each column its cells' values as they are stored; a bin's is its middle."""
    found = {}
    for name, column in tables.columns.items():
        known = np.arange(len(column.levels)) if column.numbers is None else column.numbers
        found[name] = np.asarray(known, dtype=float)[np.asarray(records[name], dtype=int)]
    return found


def _ends(findings: Findings, whole: BenchTable, values: dict[str, Any]) -> np.ndarray:
    """(k, 2) intervals of the slopes of a table that is taken for real."""
    columns = [c for c in whole.facts.schema.columns if c.name in values]
    table = BenchTable(values, columns)
    table.facts = replace(table.facts, profile=whole.facts.profile)
    try:
        fit = textbook(table, findings.model.query, table.n)
    except (ValueError, np.linalg.LinAlgError):
        return np.full((len(findings.z), 2), np.nan)
    finally:
        table.close()
    b, error = fit.coefficients[1:], fit.standard_errors[1:]
    return np.column_stack([b - _Z * error, b + _Z * error])


def main() -> None:
    """A line for each model and tool."""
    tools = sys.argv[1:] or list(TOOLS)
    shares: dict[str, list[ParityShares]] = {}
    print("| model | tool | runs | findings the same | reversed | no effect stays none |")
    print("|---|---|---|---|---|---|")
    for findings in published(read_folder()):
        if findings.frame.n < LARGE:
            continue
        for name in tools:
            runs = 1 if name == "binned" else RUNS
            share = ParityShares.of([scored(findings, TOOLS[name], run) for run in range(runs)])
            shares.setdefault(name, []).append(share)
            said = f"{share.same:.2f} | {share.reversed:.2f} | {share.none:.2f}"
            print(f"| {findings.model.name} | {name} | {runs} | {said} |", flush=True)
    for name, found in shares.items():
        same, other, none = (
            np.nanmean([getattr(share, of) for share in found])
            for of in ("same", "reversed", "none")
        )
        print(f"{name}: same {same:.3f}, reversed {other:.3f}, no effect stays none {none:.3f}")


if __name__ == "__main__":
    main()
