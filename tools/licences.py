# SPDX-License-Identifier: Apache-2.0
"""Every source file names its licence in its first lines: `python tools/licences.py [--add]`.

Without --add it lists the files that do not, and fails if there are any; `make check` runs it.
Empty files need none.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LICENCE = "SPDX-License-Identifier: Apache-2.0"  # as in the distributions' pyproject.toml
FORMS = {".py": "# {}", ".R": "# {}", ".sh": "# {}", ".js": "// {}", ".css": "/* {} */"}


def sources(root: Path) -> Iterator[Path]:
    """Files of the repository, also those that are not committed yet, that hold source code."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=root, check=True, capture_output=True, text=True).stdout
    for name in sorted(filter(None, names.split("\0"))):
        path = root / name
        if path.suffix in FORMS and path.is_file() and path.stat().st_size:
            yield path


def is_named(path: Path) -> bool:
    """Whether the first line, or the one below a shebang, names the licence."""
    with path.open(encoding="utf-8") as lines:
        return any(LICENCE in line for line, _ in zip(lines, range(2), strict=False))


def add(path: Path) -> None:
    """Puts the line at the top, below a shebang."""
    text = path.read_text("utf-8")
    head = text[: text.index("\n") + 1] if text.startswith("#!") else ""
    line = FORMS[path.suffix].format(LICENCE)
    path.write_text(f"{head}{line}\n{text.removeprefix(head)}", "utf-8")


def main(root: Path = ROOT) -> int:
    missing = [path for path in sources(root) if not is_named(path)]
    if "--add" in sys.argv[1:]:
        for path in missing:
            add(path)
        return 0
    for path in missing:
        print(f"{path.relative_to(root)} names no licence; run `python tools/licences.py --add`")
    return 1 if missing else 0


if __name__ == "__main__":
    raise SystemExit(main())
