# SPDX-License-Identifier: Apache-2.0
"""Every code block in the documentation does what a reader would see it do."""

import json
from pathlib import Path

import matplotlib as mpl
import pytest
import structlog
import yaml

from support.documents.code_blocks import ROOT, Block, blocks, page_paths, prepare, run, setup_of
from support.documents.session import session

mpl.use("Agg")

PAGES = [path for path in page_paths() if any(blocks(path))]
SHOWN = {"text", "http", "r"}
"""Output and drawings: there is nothing to run."""


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.slow
@pytest.mark.sample(20)
@pytest.mark.parametrize("path", PAGES, ids=name)
def test_a_page_s_blocks_run_in_order(path: Path, tmp_path: Path) -> None:
    wanted = [block for block in blocks(path) if is_run(block)]
    if not wanted:
        return
    with session(tmp_path, {"RETICENT_REPLY_GRID_MS": "0"}) as terminal:
        prepare(terminal, setup_of(path))
        for block in wanted:
            try:
                run(terminal, block)
            except Exception as error:
                error.add_note(f"in {block.page}, line {block.line}")
                raise
    structlog.reset_defaults()


def is_run(block: Block) -> bool:
    """Whether a block is run here; data that are only shown are at least well formed."""
    if block.reason or block.language in SHOWN:
        return False
    if block.language == "json":
        json.loads(block.text)
        return False
    if block.language == "yaml" and not block.title:
        yaml.safe_load(block.text)
        return False
    return True


MACHINES = {"docs/how-to/deploy.md", "docs/how-to/virtual-machine.md", "docs/how-to/cluster.md"}
"""Pages of commands for a machine of its own: they say at their end how they were tried."""


def test_what_is_not_run_has_a_reason_and_is_little() -> None:
    everything = [block for path in PAGES for block in blocks(path) if block.page not in MACHINES]
    left_out = [block for block in everything if block.reason]
    assert len(left_out) <= len(everything) // 5, [f"{b.page}:{b.line}" for b in left_out]
    for page in MACHINES:
        assert "## What was tried" in (ROOT / page).read_text("utf-8")
