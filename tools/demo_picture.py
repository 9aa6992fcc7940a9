"""Draws docs/images/demo.svg from the demo's real output: the analyst's part of `make demo`."""

import io
import re
import subprocess
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    shown = subprocess.run(
        [ROOT / ".venv/bin/reticent", "demo"], capture_output=True, text=True, check=True
    ).stdout
    start = shown.index(">>> fit = ds")
    picture = shown[start : shown.index("4. When the budget runs out")].rstrip()
    console = Console(record=True, width=112, file=io.StringIO())
    console.print(Text(picture))
    drawn = re.sub(
        r"@font-face \{.*?\}", "", console.export_svg(title="make demo"), flags=re.DOTALL
    )
    drawn = re.sub(r"<!-- .*? -->", "", drawn, flags=re.DOTALL)
    (ROOT / "docs/images/demo.svg").write_text(drawn)


if __name__ == "__main__":
    main()
