# SPDX-License-Identifier: Apache-2.0
"""A first draft of a schema, from what is understood of a private file.

Kinds and missing markers are proposed; bounds and levels are left open, because whatever the schema
says is published: bounds read off the data would tell everybody its smallest and largest values.
Labels of the file's own dictionary (SPSS, Stata, SAS) are a codebook and no data: they become
levels.
"""

import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from reticent_server.domain.column_kind import ColumnKind
from reticent_server.domain.dates import ISO_DATES
from reticent_server.domain.reading import UNSAID, Reading
from reticent_server.vault.column_scan import MANY, ColumnScan
from reticent_server.vault.understanding import ScannedColumn, Understood, two_forms, understand

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,63}")
_MADE = 50  # characters of a made name: with "column_" and a number it stays below the 64 of a name
_YAML_WORDS = {"true", "false", "yes", "no", "on", "off", "null"}
_INTRODUCTION = """\
# A draft of a schema from the header and the cells of {file}.
# Fill in the bounds and the levels from what is known about the variables in general (the codebook,
# the form, physical limits), not from the smallest and largest values in this file: the schema is
# published, and every guarantee is relative to it. Levels are quoted texts: ["0", "1"];
# labels for several texts of the file are levels: {{low: ["1", "2"], high: ["3"]}}, and other:
# "rest" takes every text that is not listed. A column of two texts can be {{kind: boolean, true:
# ["Yes"], false: ["No"]}}. Columns that are computed from others stand under derive, beside
# columns: derive: {{income_k: "income / 1000"}}.
# Bounds of dates are dates: lower: 2010-01-01.
# `file` says how the file is read, as it was understood: change it where it is wrong.
# `missing` lists the texts of missing cells, as they were found; columns with missing cells need
# them.
# `label` is what the file calls a column: it is published, so read it as you read the names.
# Delete the columns that analysts do not need: they are then not loaded.
"""
_OPEN: Mapping[ColumnKind, str] = {kind: kind.traits.draft for kind in ColumnKind}
_MIXED = (
    "its cells are numbers that are not all written in one way, such as 1.234,5 and 1,234.5: as "
    "categories, each is a level. Write them alike, or say another decimal sign or sign between "
    "thousands"
)
DATE: Literal["date"] = "date"
_OPEN_DATE = "kind: date{source}{form}, lower: , upper: {missing}"


@dataclass(frozen=True, slots=True)
class ProposedColumn:
    """A column of a file, as a schema may declare it. source: its name in the file. kind: as the
    schema file names it, None where cells of its type cannot be loaded. form: of dates, strptime's;
    empty where it must be asked, and then `forms` has both. missing: texts of missing cells.
    levels: (label, codes) of the file's dictionary, and label what it calls the column. is_idle:
    whether it has no cells, or too many texts for levels. warning: what the kind does not tell.
    """

    source: str
    name: str
    kind: ColumnKind | Literal["date"] | None
    form: str = ""
    forms: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    levels: tuple[tuple[str, tuple[str, ...]], ...] = ()
    label: str = ""
    is_idle: bool = False
    warning: str = ""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What is proposed for a file. rows: that were looked at; whole: whether they are all of them.
    questions: what must be said before it can be read. cells: of each column, by its name in the
    file, the first ones as texts.
    """

    reading: Reading
    columns: tuple[ProposedColumn, ...]
    rows: int
    whole: bool
    questions: tuple[str, ...] = ()
    sheets: tuple[str, ...] = ()
    cells: dict[str, tuple[str, ...]] = field(default_factory=dict, repr=False)

    def of(self, source: str) -> tuple[str, ...]:
        """The first cells of a column of the file."""
        return self.cells.get(source, ())


def propose(path: Path, said: Reading = UNSAID) -> Proposal:
    """The columns of a file, with names and kinds that fit all cells that were looked at. Raises
    CuratorError.
    """
    known = understand(path, said)
    names = _names([column.file.name for column in known.columns])
    columns = tuple(_proposed(column, names, known) for column in known.columns)
    cells = {column.file.name: column.first for column in known.columns}
    return Proposal(
        known.reading, columns, known.rows, known.whole, known.questions, known.sheets, cells
    )


def _proposed(column: ScannedColumn, names: Mapping[str, str], known: Understood) -> ProposedColumn:
    file, scan = column.file, column.scan
    source, missing = file.name, scan.missing()
    if file.has_missing and "" not in missing:
        missing = ("", *missing)
    codes = {code for _, each in file.levels for code in each}
    if file.levels and scan.texts <= codes:
        kept = ProposedColumn(source, names[source], ColumnKind.CATEGORICAL, label=file.label)
        return replace(kept, missing=missing, levels=file.levels)
    kind, forms = _kind(scan, known.reading)
    form = forms[0] if len(forms) == 1 else ""
    idle = kind is ColumnKind.CATEGORICAL and (not scan.has_cells or len(scan.texts) > MANY)
    return ProposedColumn(
        source,
        names[source],
        kind,
        form,
        forms if len(forms) > 1 else (),
        missing,
        label=file.label,
        is_idle=idle,
        warning=_MIXED if kind is ColumnKind.CATEGORICAL and _is_of_numbers(scan) else "",
    )


def _is_of_numbers(scan: ColumnScan) -> bool:
    """Whether its texts are numbers, which the file's way of writing them does not read."""
    return scan.has_cells and not scan.is_typed and scan.is_numbers


def _kind(
    scan: ColumnScan, reading: Reading
) -> tuple[ColumnKind | Literal["date"] | None, tuple[str, ...]]:
    """The narrowest kind that takes every cell, and of dates the formats among which must be
    chosen.
    """
    if not scan.loads:
        return None, ()
    if scan.is_date:
        return DATE, (ISO_DATES,)
    if scan.has_cells and scan.is_boolean:
        return ColumnKind.BOOLEAN, ()
    numbers = reading.numbers in scan.styles or (reading.decimal is None and scan.styles)
    if scan.has_cells and numbers:
        return (ColumnKind.INTEGER if scan.is_whole else ColumnKind.NUMERIC), ()
    forms = _forms(scan, reading)
    return (DATE if forms else ColumnKind.CATEGORICAL), forms


def _forms(scan: ColumnScan, reading: Reading) -> tuple[str, ...]:
    """The first format that fits all cells, both where day and month cannot be distinguished, and
    none for no dates."""
    both = two_forms(scan)
    if both is None:
        return scan.forms[:1] if scan.has_cells else ()
    chosen = {"day-first": both[:1], "month-first": both[1:]}
    return chosen.get(reading.dates or "", both)


def draft_text(proposal: Proposal, file: str) -> str:
    """The text of a schema file, from what was understood of a file."""
    lines = [_line(column) for column in proposal.columns]
    asked = "".join(f"# To be answered: {question}\n" for question in proposal.questions)
    head = 'description: ""\n' + _file_line(proposal)
    head += "unit: row  # or {column: person_id, max_rows: 3}\ncolumns:\n"
    return _INTRODUCTION.format(file=file) + asked + head + "".join(lines)


def _file_line(proposal: Proposal) -> str:
    """How the file is read; a decimal sign that must be asked for is left open."""
    said = {key: value for key, value in proposal.reading.said.items() if key != "dates"}
    parts = [f"{key}: {_plain(value)}" for key, value in said.items()]
    if proposal.reading.decimal is None and any("decimal" in q for q in proposal.questions):
        parts.append("decimal: ")
    return f"file: {{{', '.join(parts)}}}\n"


def _plain(value: str | int) -> str:
    bare = isinstance(value, int) or re.fullmatch(r"[a-z][a-z0-9-]*", value)
    return str(value) if bare else json.dumps(value, ensure_ascii=False)


def _names(sources: list[str]) -> dict[str, str]:
    """A name for each column of the file: its own where it is one, else one that is made from
    it.
    """
    names = {source: source for source in sources if _NAME.fullmatch(source)}
    taken = set(names)
    for number, source in enumerate(sources, start=1):
        if source not in names:
            made = re.sub(r"[^A-Za-z0-9]+", "_", _latin(source)).strip("_")[:_MADE]
            made = made if made[:1].isalpha() else f"column_{made}".strip("_")
            names[source] = made if made not in taken else f"{made}_{number}"
            taken.add(names[source])
    return names


def _latin(text: str) -> str:
    """Letters without their accents, as far as they are Latin ones."""
    return unicodedata.normalize("NFKD", text.replace("ß", "ss")).encode("ascii", "ignore").decode()


def _line(column: ProposedColumn) -> str:
    name, source = column.name, column.source
    if column.kind is None:
        return (
            f"  # {source if name == source else json.dumps(source)}: its type cannot be loaded; "
            "write it as text or numbers\n"
        )
    key = json.dumps(name) if name.lower() in _YAML_WORDS else name
    parts = {
        "source": _labelled(column)
        + ("" if source == name else f", from: {json.dumps(source, ensure_ascii=False)}"),
        "missing": f", missing: {_listed(column.missing)}" if column.missing else "",
        "levels": _levels(column),
        "form": _form(column),
    }
    body = _OPEN_DATE if column.kind == DATE else _OPEN[ColumnKind(column.kind)]
    line = f"{key}: {{{body.format(**parts)}}}"
    remarks = [f"format: {' or '.join(column.forms)}"] if column.forms else []
    remarks += [column.warning] if column.warning else []
    remark = f"  # {'; '.join(' '.join(r.split()) for r in remarks)}" if remarks else ""
    if column.is_idle:
        return f"  # {line}{remark}  # no cells, or more than {MANY} different texts: left out\n"
    return f"  {line}{remark}\n"


def _labelled(column: ProposedColumn) -> str:
    """What the file's dictionary calls it, as the schema publishes it once a curator has read
    it.
    """
    label = json.dumps(column.label, ensure_ascii=False)
    return f", label: {label}" if column.label else ""


def _form(column: ProposedColumn) -> str:
    if column.kind != DATE or column.form == ISO_DATES:
        return ""
    return f", format: {json.dumps(column.form)}" if column.form else ", format: "


def _levels(column: ProposedColumn) -> str:
    pairs = [
        f"{json.dumps(level, ensure_ascii=False)}: {_listed(codes)}"
        for level, codes in column.levels
    ]
    return f"{{{', '.join(pairs)}}}" if pairs else "[]"


def _listed(texts: tuple[str, ...]) -> str:
    return json.dumps(list(texts), ensure_ascii=False)
