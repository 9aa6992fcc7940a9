# SPDX-License-Identifier: Apache-2.0
"""The account that README and the tutorial give an analyst can run what the documentation shows."""

from pathlib import Path

import matplotlib as mpl
import pytest

from support.documents.code_blocks import ROOT, blocks, run
from support.documents.session import session
from support.tables.houses import write_houses

mpl.use("Agg")

ASKED = """\
import reticent

ds = reticent.Client("http://127.0.0.1:8000", key="rk_…").dataset("houses")
asked = {
    "iqr": {"column": "price", "mechanism": "ptr"},
    "depth_median": {"columns": ["price", "sqft_living"]},
    "median": {"column": "price", "mechanism": "smooth_sensitivity"},
}
planned = {kind: ds.plan(kind, **query, epsilon=0.5) for kind, query in asked.items()}
made = {kind: getattr(ds, kind)(**query, epsilon=0.5) for kind, query in asked.items()}
"""


@pytest.mark.audit
@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_the_documented_account_runs_what_is_charged_for_delta(page: str, tmp_path: Path) -> None:
    """After the page's own queries, all three; a reply or No Reply, and never a refusal."""
    write_houses(tmp_path / "houses.csv")
    with session(tmp_path, {"RETICENT_REPLY_GRID_MS": "0"}) as terminal:
        for block in blocks(ROOT / page):
            if block.language in {"yaml", "sh", "python"} and not block.reason:
                run(terminal, block)
        terminal.python(ASKED)
        planned, made = terminal.names["planned"], terminal.names["made"]
        assert all(plan.covered for plan in planned.values())
        assert "covers" in repr(planned["iqr"])
        assert {release.status for release in made.values()} <= {"reply", "no_reply"}
        assert all(release.guarantee.delta == 1e-8 for release in made.values())
