# SPDX-License-Identifier: Apache-2.0
"""A first draft of a schema, from what is understood of a private file.

A schema is published, so a draft says nothing that a single cell decides. Kinds are what most cells
of a column are, the texts of missing cells one list for all columns, and bounds and levels are
left open. What was found in the cells besides is told to the curator alone, beside the draft.
Labels of the file's own dictionary (SPSS, Stata, SAS) are a codebook and no data: they become
levels.
"""

import json
import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from reticent_server.domain.column_kind import ColumnKind
from reticent_server.domain.dates import ISO_DATES
from reticent_server.domain.reading import UNSAID, Reading
from reticent_server.domain.schema import USUAL_MARKERS
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
# `missing` lists texts that mean a missing cell: the same list for every column, whatever the file
# holds. Delete it where no cell can be missing: medians and a few other kinds ask for that.
# Numbers are drafted as numeric: write integer where a variable is whole by its definition (years,
# counts), and boolean, without bounds, for flags of 0 and 1.
# `label` is what the file calls a column: it is published, so read it as you read the names.
# Delete the columns that analysts do not need: they are then not loaded. Identifiers are left out.
"""
_OPEN: Mapping[ColumnKind, str] = {kind: kind.traits.draft for kind in ColumnKind}
_MIXED = (
    "its cells are numbers that are not all written in one way, such as 1.234,5 and 1,234.5: as "
    "categories, each is a level. Write them alike, or say another decimal sign or sign between "
    "thousands"
)
_FEW = 0.05
"""Share of a column's rows that hold a cell, below which its kind is not known; and of its cells
that differ, from which a column that is named like an identifier is one: of wards it is not."""

_NAMES = 0.95
"""Share of different texts that makes a column one of names, in which a few may stand twice."""

_PERSONS = 20
"""Different texts that are at least needed for that: fewer may be levels."""

_IDENTIFIER = re.compile(
    r"(?:(?:^|[^A-Za-z])(?i:ids?|uuid|guid|identifier|mrn|pid|n[ro]\.?|nummer)"
    r"|(?i:(?:subj|patient|pat|person|case|record|customer|user|client|member)(?:id|nr|no)"
    r"|kennung|kennziffer|fallnummer|patientennummer|personnummer)"
    r"|[a-z]I[dD])\W*$"
)
"""How columns are named that tell persons or records apart."""

_SHOWN, _LONGEST = 3, 40
"""Texts of a warning, and characters of each."""

DATE: Literal["date"] = "date"
_OPEN_DATE = "kind: date{source}{form}, lower: , upper: {missing}"


@dataclass(frozen=True, slots=True)
class ProposedColumn:
    """A column of a file, as a schema may declare it. source: its name in the file. kind: as the
    schema file names it, None where cells of its type cannot be loaded. form: of dates, strptime's;
    empty where it must be asked, and then `forms` has both. missing: texts of missing cells, the
    usual ones. levels: (label, codes) of the file's dictionary, and label what it calls the column.
    idle: why it is left out, unless the curator takes it in. For the curator alone, as they are
    private: found, the texts of missing cells in the file; seen, what the cells are besides their
    kind; warning, what does not fit it.
    """

    source: str
    name: str
    kind: ColumnKind | Literal["date"] | None
    form: str = ""
    forms: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    levels: tuple[tuple[str, tuple[str, ...]], ...] = ()
    label: str = ""
    idle: str = ""
    found: tuple[str, ...] = ()
    seen: str = ""
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
    """The columns of a file, with names and kinds that fit most cells that were looked at. Raises
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
    codes = {code for _, each in file.levels for code in each}
    levels = file.levels if len(scan.texts - codes) <= len(codes) else ()
    kind, forms = (ColumnKind.CATEGORICAL, ()) if levels else _kind(scan, known.reading)
    open_forms = forms if len(forms) > 1 else ()
    return ProposedColumn(
        file.name,
        names[file.name],
        kind,
        forms[0] if len(forms) == 1 else "",
        open_forms,
        tuple(text for text in USUAL_MARKERS if text not in codes),
        levels,
        file.label,
        _idle(file.name, scan, kind) if not levels else "",
        scan.missing(known.reading.numbers),
        _seen(scan, kind, known.reading),
        "; ".join(_warnings(column, kind, codes if levels else None, known.reading)),
    )


def _idle(name: str, scan: ColumnScan, kind: ColumnKind | Literal["date"] | None) -> str:
    """Why a column is not loaded unless it is chosen."""
    if _is_empty(scan):
        return "no cells, or hardly any"
    named = re.search(_IDENTIFIER, name) and scan.different > _FEW * scan.cells
    apart = kind is ColumnKind.CATEGORICAL and _NAMES * scan.cells <= scan.different
    apart = apart and scan.different >= _PERSONS
    if kind not in {DATE, ColumnKind.BOOLEAN} and (named or scan.is_enumeration or apart):
        return "an identifier; if it is of persons, it can be the unit"
    if kind is ColumnKind.CATEGORICAL and len(scan.texts) > MANY:
        return f"more than {MANY} different texts"
    return ""


def _is_empty(scan: ColumnScan) -> bool:
    return not scan.has_cells or scan.cells < _FEW * scan.rows


def _seen(scan: ColumnScan, kind: ColumnKind | Literal["date"] | None, reading: Reading) -> str:
    """What the cells are besides their kind: the curator knows whether it is so by definition."""
    if kind is not ColumnKind.NUMERIC or not scan.numbers:
        return ""
    numbers = scan.numbers.get(reading.numbers) or next(iter(scan.numbers.values()))
    if numbers.flags == numbers.cells:
        return "0 and 1 alone: boolean, if it is a flag by definition"
    return "whole numbers: integer, if they are so by definition" if numbers.is_whole else ""


def _warnings(
    column: ScannedColumn,
    kind: ColumnKind | Literal["date"] | None,
    codes: Collection[str] | None,
    reading: Reading,
) -> Iterator[str]:
    """codes: of the file's dictionary, where they are the levels."""
    scan = column.scan
    if codes is not None:
        if scan.texts - set(codes):
            yield f"cells without a label, such as {_quoted(sorted(scan.texts - set(codes)))}"
        return
    if kind is ColumnKind.CATEGORICAL and scan.has_cells and not scan.is_typed and scan.is_numbers:
        yield _MIXED
    fitting = {
        ColumnKind.NUMERIC: scan.cells_in(reading.numbers),
        ColumnKind.BOOLEAN: scan.words,
        DATE: scan.cells_in(scan.forms[0]) if scan.forms else scan.cells,
    }
    foreign = scan.cells - fitting.get(kind or "", scan.cells)
    if foreign > 0 and not scan.is_typed and reading.decimal is not None:
        such = f", such as {_quoted(scan.foreign)}" if scan.foreign else ""
        yield f"{foreign} of the cells looked at are something else{such}: the load names them"
    if rare := [text for text in scan.missing(reading.numbers) if text not in USUAL_MARKERS]:
        yield (
            f"{_quoted(rare)} may stand for missing cells: add it to `missing` if the codebook "
            "says so"
        )


def _quoted(texts: Sequence[str]) -> str:
    return ", ".join(repr(text[:_LONGEST]) for text in texts[:_SHOWN])


def _kind(
    scan: ColumnScan, reading: Reading
) -> tuple[ColumnKind | Literal["date"] | None, tuple[str, ...]]:
    """The kind of most cells, and of dates the formats among which must be chosen. Numbers are
    numeric: that all of them are whole would be told by a single cell.
    """
    if not scan.loads:
        return None, ()
    if _is_empty(scan):
        return ColumnKind.CATEGORICAL, ()
    if scan.is_date:
        return DATE, (ISO_DATES,)
    if scan.is_boolean:
        return ColumnKind.BOOLEAN, ()
    if reading.numbers in scan.styles or (reading.decimal is None and scan.styles):
        return ColumnKind.NUMERIC, ()
    forms = _forms(scan, reading)
    return (DATE if forms else ColumnKind.CATEGORICAL), forms


def _forms(scan: ColumnScan, reading: Reading) -> tuple[str, ...]:
    """The format of most cells, both where day and month cannot be distinguished, and none for no
    dates."""
    both = two_forms(scan)
    if both is None:
        return scan.forms[:1]
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
    """How the file is read; what must be asked is left open."""
    said = {key: value for key, value in proposal.reading.said.items() if key != "dates"}
    parts = [f"{key}: {_plain(value)}" for key, value in said.items()]
    asked = " ".join(proposal.questions)
    parts += [f"{key}: " for key in ("decimal", "skip_last") if key not in said and key in asked]
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
    remark = f"  # format: {' or '.join(column.forms)}" if column.forms else ""
    if column.idle:
        return f"  # {line}{remark}  # left out: {column.idle}\n"
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
