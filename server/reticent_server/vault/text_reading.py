# SPDX-License-Identifier: Apache-2.0
"""How a text file is to be read: its encoding by its bytes, its separator, quotes and header by its
first rows.
"""

import codecs
import csv
import io
from collections import Counter
from pathlib import Path

from reticent_server.domain.reading import ENCODINGS, SEPARATORS, Reading
from reticent_server.errors import CuratorError
from reticent_server.vault.csv_file import dialect, table_lines
from reticent_server.vault.headers import header_row

_SAMPLE = 1 << 18
"""Bytes by which rows are judged: hundreds of rows of a wide table."""

_ROWS = 200
"""Rows by which a separator is judged: one that splits all of them alike splits the others."""

_AT_ONCE = 1 << 20
"""Bytes of the file that are decoded at once, to see whether all of it is UTF-8."""

_TITLES = 30
"""Rows among which the header is looked for."""

_PREFERRED = ("tab", "semicolon", "pipe", "comma")

_UTF_32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
"""The first begins as UTF-16 does."""

_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


def text_reading(path: Path, said: Reading) -> Reading:
    """What is said, and for the rest what the file looks like."""
    encoding = said.encoding or _encoding(path)
    if encoding != "utf-16":
        _refuse_zero_bytes(path)
    known = Reading(encoding=encoding)
    known = said.over(known)
    sample = _sample(path, encoding)
    quote = known.quote or _quote(sample)
    known = known.over(Reading(quote=quote))
    separator = known.separator or _separator(sample, known)
    known = known.over(Reading(separator=separator))
    header = known.header if known.header is not None else _header(sample, known)
    return known.over(Reading(header=header))


def _encoding(path: Path) -> str:
    """The only one that fits the bytes: UTF-8 where all of them are, else Windows-1252, which names
    all letters of Latin-1.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    with path.open("rb") as file:
        begins = file.read(4)
        if begins in _UTF_32:
            raise CuratorError(f"{path.name} is UTF-32, which is not read: save it as UTF-8.")
        for mark, name in _MARKS.items():
            if begins.startswith(mark):
                return name
        file.seek(0)
        try:
            while part := file.read(_AT_ONCE):
                decoder.decode(part)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return _of_one_byte(path)
    return "utf-8"


def _refuse_zero_bytes(path: Path) -> None:
    """No such text has any: raises CuratorError for UTF-16 without its mark, and for what is no
    text.
    """
    with path.open("rb") as file:
        while part := file.read(_AT_ONCE):
            if b"\0" in part:
                raise CuratorError(
                    f"{path.name} has zero bytes: it is no text, or UTF-16 without a byte-order "
                    "mark. "
                    "Save it as UTF-8."
                )


def _of_one_byte(path: Path) -> str:
    with path.open("rb") as file:
        while part := file.read(_AT_ONCE):
            try:
                part.decode("cp1252")
            except UnicodeDecodeError:  # five bytes are no characters there
                return "latin-1"
    return "windows-1252"


def _sample(path: Path, encoding: str) -> str:
    """The first whole lines; what cannot be decoded is told with its line by whoever reads the
    file.
    """
    with path.open("rb") as file:
        data = file.read(_SAMPLE)
    text = data.decode(ENCODINGS[encoding], "replace")
    return text if len(data) < _SAMPLE else text[: text.rfind("\n") + 1] or text


def _quote(sample: str) -> str:
    """Double quotes, unless there are none and cells stand in single ones on both sides."""
    if '"' in sample:
        return "double"
    edges = sum(sample.count(f"'{sign}") + sample.count(f"{sign}'") for sign in SEPARATORS.values())
    lines = sample.count("\n") + 1
    return "single" if edges >= lines and sample.startswith("'") else "double"


def _rows_by(sample: str, reading: Reading, most: int) -> list[tuple[int, list[str]]]:
    """The first rows that are not blank, each with the line on which it begins; fewer where quotes
    break off.
    """
    rows: list[tuple[int, list[str]]] = []
    lines = table_lines(io.StringIO(sample, newline=""), reading)
    reader = csv.reader(lines, **dialect(reading))
    line = 1
    try:
        for row in reader:
            if row:
                rows.append((line, [cell.strip() for cell in row]))
            line = reader.line_num + 1
            if len(rows) == most:
                break
    except csv.Error:
        pass
    return rows


def _separator(sample: str, known: Reading) -> str:
    """The one by which most rows have the same number of cells, above one. Where none makes
    several: blanks where they split all rows alike, else a comma.

    Of two that split all rows alike the comma is the last: it stands in numbers and in sentences,
    too.
    """
    best, score = "comma", 0.0
    for name in _PREFERRED:
        rows = _rows_by(sample, known.over(Reading(separator=name)), _ROWS)
        widths = Counter(len(row) for _, row in rows)
        width, times = widths.most_common(1)[0] if widths else (1, 0)
        if width > 1 and times / len(rows) > score:
            best, score = name, times / len(rows)
    return best if score or not _blanks_separate(sample, known) else "blanks"


def _blanks_separate(sample: str, known: Reading) -> bool:
    """Whether runs of blanks make the same number of cells, above one, in all rows; the first one
    may have one fewer, as R's.
    """
    rows = _rows_by(sample, known.over(Reading(separator="blanks")), _SAMPLE)
    widths = {len(row) for _, row in rows[1:]}
    if len(widths) != 1:
        return False
    header, width = len(rows[0][1]), widths.pop()
    return width > 1 and (header == width or 1 < header == width - 1)


def _header(sample: str, known: Reading) -> int:
    """The line of the names; 0: there are none."""
    rows = _rows_by(sample, known, _TITLES)
    cells = [cells for _, cells in rows]
    if known.separator == "blanks" and len(cells) > 1 and len(cells[0]) + 1 == len(cells[1]):
        return rows[0][0]  # R writes no name above its row names
    row = header_row(cells)
    return 0 if row is None else rows[row][0] if rows else 1
