# SPDX-License-Identifier: Apache-2.0
"""What mkdocs does besides: pages made from the code, the changelog, and notebooks as pages."""

import base64
import json
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

from docs_reference import pages  # noqa: E402


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Every query kind and every decision has its place in the navigation."""
    for title, folder in (("Query kinds", "kinds"), ("Decisions", "adr")):
        found = sorted(path.name for path in (ROOT / "docs" / folder).glob("*.md"))
        at = next(i for i, entry in enumerate(config.nav or ()) if title in entry)
        config.nav[at] = {title: [f"{folder}/{name}" for name in found]}
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the generated pages."""
    made: dict[str, str | bytes] = dict(pages())
    made["changelog.md"] = (ROOT / "CHANGELOG.md").read_text("utf-8")
    for notebook in sorted((ROOT / "docs/notebooks").glob("*.ipynb")):
        files.remove(files.src_uris[f"notebooks/{notebook.name}"])
        made |= notebook_page(notebook)
    for path, content in made.items():
        files.append(File.generated(config, path, content=content))
    return files


def notebook_page(path: Path) -> dict[str, str | bytes]:
    """An executed notebook as a page and its pictures, and the notebook itself beside them."""
    lines = [f"[Download the notebook]({path.name})", ""]
    made: dict[str, str | bytes] = {f"notebooks/{path.name}": path.read_bytes()}
    for number, cell in enumerate(json.loads(path.read_text("utf-8"))["cells"]):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            lines += [source, ""]
            continue
        lines += ["```python", source, "```", ""]
        for output in cell["outputs"]:
            shown, picture = _output(output, f"{path.stem}-{number}.png")
            lines += shown
            if picture is not None:
                made[f"notebooks/{path.stem}-{number}.png"] = picture
    # The first heading of the notebook comes first.
    head = next(i for i, line in enumerate(lines) if line.startswith("# "))
    page = [lines[head], "", *lines[:head], *lines[head + 1 :]]
    return made | {f"notebooks/{path.stem}.md": "\n".join(page) + "\n"}


def _output(output: dict[str, Any], picture: str) -> tuple[list[str], bytes | None]:
    data = output.get("data", {})
    if "image/png" in data:
        return [f"![{output['metadata'].get('alt', 'A plot')}]({picture})", ""], base64.b64decode(
            data["image/png"]
        )
    if "text/html" in data:
        html = "".join(data["text/html"])
        return [f'<div class="output" markdown="0">{html}</div>', ""], None
    text = "".join(output.get("text") or data.get("text/plain") or ())
    return ["```text", text.rstrip("\n"), "```", ""], None
