# SPDX-License-Identifier: Apache-2.0
"""Draws the pictures of docs/tutorial.md: `python tools/tutorial_pictures.py` runs the page, as its
test does.

The table is synthetic, and so may be shown. Noise is fresh: pictures differ from run to run.
"""

import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import matplotlib as mpl  # noqa: E402

from docs.test_snippets import is_run  # noqa: E402
from support.documents.code_blocks import blocks, prepare, run, setup_of  # noqa: E402
from support.documents.session import session  # noqa: E402

PAGE, PICTURES = ROOT / "docs/tutorial.md", ROOT / "docs/images/tutorial"
DPI = 100  # pixels an inch: a picture has 10 to 30 kB


def main() -> None:
    mpl.use("Agg")
    mpl.rcParams["savefig.dpi"] = DPI
    PICTURES.mkdir(parents=True, exist_ok=True)
    text = PAGE.read_text("utf-8")
    with tempfile.TemporaryDirectory() as folder, session(Path(folder)) as terminal:
        prepare(terminal, setup_of(PAGE))
        for block in filter(is_run, blocks(PAGE)):
            run(terminal, block)
        for made in Path(folder).glob("*.png"):
            if f"images/tutorial/{made.name}" in text:
                shutil.copy(made, PICTURES / made.name)


if __name__ == "__main__":
    main()
