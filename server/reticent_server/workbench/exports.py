# SPDX-License-Identifier: Apache-2.0
"""A release as a script that replays it for free, or as a document with its guarantee's
sentence.
"""

import html
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from csv import writer
from dataclasses import dataclass
from importlib.util import find_spec
from io import BytesIO, StringIO
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from reticent_server.web.layout import is_pair, laid_out
from reticent_server.web.spreadsheets import cell
from reticent_server.web.tables import ResultTable, shown

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Export:
    """write: of a release's document and the server's address."""

    label: str
    ending: str
    media_type: str
    write: Callable[[Document, str], bytes]


def formats() -> dict[str, str]:
    """The formats that can be written here, with their labels; Word only where its library is
    installed.
    """
    return {
        name: each.label
        for name, each in EXPORTS.items()
        if name != "word" or find_spec("docx") is not None
    }


def _python(document: Document, url: str, steps: Sequence[str] = ()) -> bytes:
    return "\n".join(_python_lines(document, url, steps)).encode()


def _python_lines(document: Document, url: str, steps: Sequence[str]) -> list[str]:
    return [
        "import os",
        "",
        "import reticent",
        "",
        f"# Release {document['id']}: reading it again is free.",
        f"client = reticent.Client({json.dumps(url)}, key=os.environ['RETICENT_KEY'])",
        f"release = {_reading(document)}",
        *(steps or ["print(release.summary())"]),
        "",
    ]


def _reading(document: Document) -> str:
    """The expression that reads it: one's own by its id, another's from those that are
    published."""
    name = json.dumps(document["id"])
    if not document.get("published"):
        return f"client.release({name})"
    listed = f"client.dataset({json.dumps(document['dataset'])}).published()"
    return f"next(each for each in {listed} if each.id == {name})"


def _r(document: Document, url: str, steps: Sequence[str] = ()) -> bytes:
    lines = [
        "library(reticent)",
        "",
        f"# Release {document['id']}: reading it again is free.",
        f'client <- reticent_client({json.dumps(url)}, key = Sys.getenv("RETICENT_KEY"))',
        f"answer <- release(client, {json.dumps(document['id'])})",
        *(steps or ["summary(answer)"]),
        "",
    ]
    return "\n".join(lines).encode()


def _notebook(document: Document, url: str, steps: Sequence[str] = ()) -> bytes:
    """A notebook of format 4.5: the question and its guarantee, then the script."""
    parts = [f"# Release {document['id']}", *_answers(document), _asked(document)]
    told = "\n\n".join([*parts, promise(document)])
    code = "\n".join(_python_lines(document, url, steps)).rstrip()
    cells = [
        {"id": "question", "cell_type": "markdown", "metadata": {}, "source": told},
        {
            "id": "replay",
            "cell_type": "code",
            "metadata": {},
            "source": code,
            "outputs": [],
            "execution_count": None,
        },
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    book = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(book, indent=1).encode()


def promise(document: Document) -> str:
    """The guarantee's sentence, with what was charged."""
    given = document["guarantee"]
    charged = f"Charged: ε = {given['epsilon']:g}, δ = {given['delta']:g}."
    return f"{given['statement']} {charged} Mechanism: {given['mechanism']}."


def _answers(document: Document) -> list[str]:
    """The first line: which question a model's numbers answer. Empty where the kind's name says
    it.
    """
    line = document.get("answers")
    return [f"{line}."] if line else []


def _asked(document: Document) -> str:
    query = document["query"]
    fields = "; ".join(f"{k.replace('_', ' ')}: {v}" for k, v in query.items() if k != "kind")
    return (
        f"{query['kind'].replace('_', ' ')} on {document['dataset']}, version "
        f"{document['version']}. {fields}"
    )


def _parts(
    document: Document,
) -> tuple[list[tuple[str, str]], list[ResultTable], tuple[str, ...]]:
    """(facts, tables, warnings), in texts; no row is left out."""
    if document["result"] is None:
        return [("status", document["status"].replace("_", " "))], [], ()
    result = shown(document["result"], longest=sys.maxsize)
    return [*result.facts, *result.more], list(result.tables), result.notes


def _markdown(document: Document, url: str) -> bytes:  # noqa: ARG001
    facts, tables, notes = _parts(document)
    lines = [f"# Release {document['id']}", ""]
    lines += [f"**{_in_markdown(line)}**\n" for line in _answers(document)]
    lines += [_in_markdown(_asked(document)), ""]
    lines += [f"> {_in_markdown(note)}\n" for note in notes]
    for table in tables:
        lines += [f"## {_in_markdown(table.title)}", ""] if table.title else []
        lines += [_bar(table.heads), "|" + "---|" * len(table.heads)]
        lines += [_bar((*row.labels, *row.cells)) for row in table.rows] + [""]
    lines += [f"- {_in_markdown(name)}: {_in_markdown(said)}" for name, said in facts]
    return "\n".join([*lines, "", f"**Guarantee.** {_in_markdown(promise(document))}", ""]).encode()


def _bar(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(map(_in_markdown, cells)) + " |"


def _in_markdown(text: str) -> str:
    for mark in "\\`*_{}[]<>|#":
        text = text.replace(mark, "\\" + mark)
    return " ".join(text.split())


def _html(document: Document, url: str) -> bytes:  # noqa: ARG001
    facts, tables, notes = _parts(document)
    e = html.escape
    parts = [f"<h1>Release {e(document['id'])}</h1>"]
    parts += [f"<p><strong>{e(line)}</strong></p>" for line in _answers(document)]
    parts.append(f"<p>{e(_asked(document))}</p>")
    parts += [f"<p>{e(note)}</p>" for note in notes]
    for table in tables:
        head = "".join(f'<th scope="col">{e(each)}</th>' for each in table.heads)
        rows = "".join(
            "<tr>"
            + "".join(f'<th scope="row">{e(label)}</th>' for label in row.labels)
            + "".join(f"<td>{e(cell)}</td>" for cell in row.cells)
            + "</tr>"
            for row in table.rows
        )
        parts.append(
            f"<table><caption>{e(table.title)}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        )
    parts += [f"<p>{e(name)}: {e(said)}</p>" for name, said in facts]
    parts.append(f"<p><strong>Guarantee.</strong> {e(promise(document))}</p>")
    head = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{e(document["id"])}</title>'
    )
    return (head + "".join(parts) + "</html>").encode()


def _latex(document: Document, url: str) -> bytes:  # noqa: ARG001
    from reticent._latex import escaped  # noqa: PLC0415 - a tenth of a second

    facts, tables, notes = _parts(document)
    lines = [f"% Release {document['id']}"]
    lines += [rf"\textbf{{{escaped(line)}}}" + "\n" for line in _answers(document)]
    lines += [escaped(_asked(document)), ""]
    lines += [escaped(note) + "\n" for note in notes]
    for table in tables:
        labels = len(table.rows[0].labels)
        lines += [f"% {escaped(table.title)}"] if table.title else []
        form = "l" * labels + "r" * (len(table.heads) - labels)
        lines += [rf"\begin{{tabular}}{{{form}}}", r"\hline"]
        lines += [" & ".join(map(escaped, table.heads)) + r" \\ \hline"]
        lines += [
            " & ".join(map(escaped, (*row.labels, *row.cells))) + r" \\" for row in table.rows
        ]
        lines += [r"\hline", r"\end{tabular}", ""]
    lines += [f"{escaped(name)}: {escaped(said)}." + r"\\" for name, said in facts]
    return "\n".join(
        [*lines, "", rf"\emph{{Guarantee.}} {escaped(promise(document))}", ""]
    ).encode()


def _csv(document: Document, url: str) -> bytes:  # noqa: ARG001
    """The tables below each other, an empty line between two, then single values: numbers with all
    their digits, intervals in two columns.

    No cell begins as a formula of a spreadsheet would.
    """
    out = StringIO()
    rows = writer(out)
    rows.writerows(row for line in _answers(document) for row in (["answers", line], []))
    laid = laid_out(document["result"] or {"status": document["status"]})
    for table in laid.tables:
        rows.writerows([[_cell(table.title)]] if table.title else [])
        columns = [*table.labels, *table.columns.items()]
        spread = [part for head, values in columns for part in _spread(head, values)]
        rows.writerow([_cell(head) for head, _ in spread])
        rows.writerows([_cell(values[i]) for _, values in spread] for i in range(table.size))
        rows.writerow([])
    for name, value in (*laid.facts.items(), *laid.more.items()):
        rows.writerow([_cell(name), *map(_cell, value if is_pair(value) else (value,))])
    rows.writerows(["warning", _cell(note)] for note in laid.notes)
    rows.writerow(["guarantee", promise(document)])
    return out.getvalue().encode()


def _spread(head: str, values: Sequence[Any]) -> list[tuple[str, Sequence[Any]]]:
    """A column of intervals as two of their ends; any other as it is."""
    if not any(is_pair(each) for each in values):
        return [(head, values)]
    ends = [each if is_pair(each) else (None, None) for each in values]
    return [(f"{head} {end}", [pair[i] for pair in ends]) for i, end in enumerate(("low", "high"))]


def _cell(value: Any) -> str:
    """A number as Python writes it, which gives the same number back."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case int() | float():
            return repr(value)
        case _:
            return cell(str(value))


def _json(document: Document, url: str) -> bytes:  # noqa: ARG001
    return json.dumps(document, separators=(",", ":")).encode()


def _word(document: Document, url: str) -> bytes:  # noqa: ARG001
    from docx import (  # type: ignore[import-not-found,unused-ignore] # noqa: PLC0415 - an extra
        Document as Word,
    )

    facts, tables, notes = _parts(document)
    page = Word()
    page.add_heading(f"Release {document['id']}", 1)
    for line in _answers(document):
        page.add_paragraph().add_run(line).bold = True
    page.add_paragraph(_asked(document))
    for note in notes:
        page.add_paragraph(note)
    for table in tables:
        page.add_paragraph(table.title)
        grid = page.add_table(rows=0, cols=len(table.heads))
        for cells in [table.heads, *((*row.labels, *row.cells) for row in table.rows)]:
            for place, each in zip(grid.add_row().cells, cells, strict=True):
                place.text = each
    for name, said in facts:
        page.add_paragraph(f"{name}: {said}")
    page.add_paragraph(f"Guarantee. {promise(document)}")
    out = BytesIO()
    page.save(out)
    return _without_clock(out)


def _without_clock(archive: BytesIO) -> bytes:
    """The parts of a zip archive without the time at which they were packed: a release says when it
    was asked for, and nothing when it was computed or read.
    """
    out = BytesIO()
    with ZipFile(archive) as packed, ZipFile(out, "w") as kept:
        for part in packed.infolist():
            kept.writestr(ZipInfo(part.filename), packed.read(part), ZIP_DEFLATED)
    return out.getvalue()


_DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
EXPORTS: Mapping[str, Export] = {
    "python": Export("Python", ".py", "text/x-python; charset=utf-8", _python),
    "r": Export("R", ".R", "text/plain; charset=utf-8", _r),
    "notebook": Export("Notebook", ".ipynb", "application/x-ipynb+json", _notebook),
    "markdown": Export("Markdown", ".md", "text/markdown; charset=utf-8", _markdown),
    "html": Export("HTML", ".html", "text/html; charset=utf-8", _html),
    "latex": Export("LaTeX", ".tex", "application/x-tex; charset=utf-8", _latex),
    "word": Export("Word", ".docx", _DOCX, _word),
    "csv": Export("CSV", ".csv", "text/csv; charset=utf-8", _csv),
    "json": Export("JSON", ".json", "application/json", _json),
}
SCRIPTS: Mapping[str, Callable[[Document, str, Sequence[str]], bytes]] = {
    "python": _python,
    "r": _r,
    "notebook": _notebook,
}
"""Those that do something with the release in place of printing it: `steps` are lines of code."""
