# SPDX-License-Identifier: Apache-2.0
"""The two ways in, as README shows them: six commands for a curator, eight lines for an analyst."""

import shlex
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

import reticent
from support.documents.code_blocks import ROOT, blocks, run
from support.documents.session import session
from support.tables.houses import write_houses

mpl.use("Agg")

MOST_COMMANDS = 6
MOST_LINES = 8


@pytest.mark.slow
def test_from_a_csv_file_to_a_plot(tmp_path: Path) -> None:
    page = [block for block in blocks(ROOT / "README.md") if not block.reason]
    schema, shell, python = (
        next(b for b in page if b.language == k) for k in ("yaml", "sh", "python")
    )
    commands = [line for line in shell.text.splitlines() if shlex.split(line, comments=True)]
    assert len(commands) <= MOST_COMMANDS
    assert commands[0].startswith("reticent init")
    assert commands[-1] == "reticent serve"
    statements = [line for line in python.text.splitlines() if line.strip()]
    assert len(statements) <= MOST_LINES

    write_houses(tmp_path / "houses.csv")
    with session(tmp_path, {"RETICENT_REPLY_GRID_MS": "0"}) as terminal:
        run(terminal, schema)
        run(terminal, shell)
        printed = terminal.python(python.text)
        fit = terminal.names["fit"]
        assert isinstance(fit, reticent.RegressionResults)
        assert "differentially private" in printed
        # The table was made with 160 for a square foot.
        assert abs(fit.params["sqft_living"] - 160) < 6 * fit.bse["sqft_living"]
        assert np.isfinite(fit.bse).all()
        assert (tmp_path / "fit.png").read_bytes().startswith(b"\x89PNG")
