# SPDX-License-Identifier: Apache-2.0
"""Draws docs/gallery.md and its pictures: `python tools/gallery.py [KIND …]`, the page anew in any
case.

Every kind is asked as the first example of its method says, of the table that the documentation's
examples run on, over HTTP; its release is plotted. The table is synthetic, and so may be shown.
Noise is fresh: pictures differ from run to run.
"""

import ast
import doctest
import inspect
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import matplotlib as mpl  # noqa: E402
from matplotlib import pyplot as plt  # noqa: E402

import reticent  # noqa: E402
from reticent.kinds import KINDS, result_class  # noqa: E402
from reticent_server.kinds import KINDS as ROOMS  # noqa: E402
from support.documents.code_blocks import prepare  # noqa: E402
from support.documents.session import session  # noqa: E402

PAGE, PICTURES = ROOT / "docs/gallery.md", ROOT / "docs/images/gallery"
DPI = 100  # pixels an inch: a picture has 7 to 25 kB
HEAD = """# Gallery

One plot of each kind of question, of what was released: drawing it asks the server for nothing \
more. Intervals are at 95 % and count sampling and privacy noise;
some kinds have none. The data are synthetic house sales, 6,000 rows; on larger tables intervals \
are shorter at the same ε. The pictures are made by
`python tools/gallery.py`. `plot()` returns matplotlib's axes or figure, and mostly takes `ax`.
"""


@dataclass(frozen=True, slots=True)
class Example:
    """A kind, the call that asks it, its method's first sentence, and the page that explains it."""

    kind: str
    call: str
    sentence: str
    page: str


def examples() -> Iterator[Example]:
    """Of every kind whose releases can be plotted."""
    pages = {room.name: room.page for room in ROOMS}
    for kind in KINDS:
        if hasattr(result_class(kind), "plot"):
            doc = inspect.getdoc(getattr(reticent.Dataset, kind)) or ""
            yield Example(
                kind, _call(kind, doc), doc.split("\n\n")[0].replace("\n", " "), pages[kind]
            )


def _call(kind: str, doc: str) -> str:
    """The first call of a kind in its method's examples, on one line."""
    for example in doctest.DocTestParser().get_examples(doc):
        for node in ast.walk(ast.parse(example.source)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == f"ds.{kind}":
                source = ast.get_source_segment(example.source, node) or ""
                return re.sub(r"\n *", " ", source)
    raise SystemExit(f"The method {kind} has no example that asks.")


def page() -> str:
    """The page as it is to be."""
    lines = [HEAD]
    for example in examples():
        lines += [
            f"## {example.kind}\n",
            f"{example.sentence} [More](kinds/{example.page}.md).\n",
            f"`{example.call}.plot()`\n",
            f"![{example.kind}: the plot of a release](images/gallery/{example.kind}.png)\n",
        ]
    return "\n".join(lines)


def draw(ds: Any, example: Example) -> None:
    """Asks, plots, and keeps the picture."""
    release = eval(example.call, {"ds": ds})
    drawn = release.plot()
    figure = drawn if hasattr(drawn, "savefig") else drawn.figure
    figure.set_size_inches(6.4, _height(figure))
    place = PICTURES / f"{example.kind}.png"
    figure.savefig(place, dpi=DPI, bbox_inches="tight", metadata={"Software": None})
    plt.close("all")
    print(f"{place.relative_to(ROOT)} {place.stat().st_size // 1024} kB", flush=True)


def _height(figure: Any) -> float:
    """Inches: low for one number with its interval, else as it is drawn, up to what a page
    takes.
    """
    is_one_number = len(figure.axes) == 1 and len(figure.axes[0].get_yticks()) == 1
    return 1.3 if is_one_number else min(float(figure.get_size_inches()[1]), 4.2)


def main() -> None:
    mpl.use("Agg")
    PICTURES.mkdir(exist_ok=True)
    PAGE.write_text(page(), "utf-8")
    wanted = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder, session(Path(folder), {}) as terminal:
        prepare(terminal, "served")
        for example in examples():
            if not wanted or example.kind in wanted:
                draw(terminal.names["ds"], example)


if __name__ == "__main__":
    main()
