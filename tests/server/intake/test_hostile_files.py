# SPDX-License-Identifier: Apache-2.0
"""Files that strangers have made for the parsers: each ends as a sentence, in a cell whose limits
hold.
"""

import json
import zipfile
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pyreadstat
import pytest
import xlsxwriter

from reticent_server.errors import CuratorError
from reticent_server.intake.cell import in_cell
from reticent_server.intake.looking import LIMITS, Look, looked
from reticent_server.vault import sheet_file
from reticent_server.vault.draft import propose
from support.intake.looks import LooksAt, LooksAtChanged

MB = 1 << 20
CHANGED = replace(LIMITS, writes=True, seconds=60)
SHEET = (
    "<worksheet "
    'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>{}</sheetData></worksheet>'
)
FIRST = '<row r="1"><c r="A1" t="str"><v>x</v></c></row>'
ENTITIES = (
    '<!DOCTYPE z [<!ENTITY a "aa"><!ENTITY b "&a;&a;"><!ENTITY f SYSTEM "file:///etc/passwd">]>'
)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("sheets") / "plain.xlsx"
    with xlsxwriter.Workbook(str(file)) as book:
        sheet = book.add_worksheet()
        sheet.write_column(0, 0, ["x", 1, 2])
    return file


def sheet(plain: Path, folder: Path, name: str, xml: str) -> Path:
    """The Excel file with another sheet."""
    made = folder / f"{name}.xlsx"
    with zipfile.ZipFile(plain) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
        for part in old.namelist():
            new.writestr(part, xml if part.endswith("sheet1.xml") else old.read(part))
    return made


@pytest.mark.slow
def test_sheets_that_are_none(plain: Path, tmp_path: Path) -> None:
    names = "".join(f'<c t="str"><v>n{k}</v></c>' for k in range(16_384))
    row = '<row r="2"><c r="A2" t="str"><v>&b;&f;</v></c></row>'
    files = [
        sheet(plain, tmp_path, "deep", SHEET.format("<a>" * 100_000 + "</a>" * 100_000)),
        sheet(plain, tmp_path, "entities", ENTITIES + SHEET.format(FIRST + row)),
        sheet(plain, tmp_path, "wide", SHEET.format(f"<row>{names}</row><row>{names}</row>")),
        sheet(plain, tmp_path, "broken", "<worksheet><sheetData><row"),
        plain,
    ]
    (tmp_path / "zip.xlsx").write_bytes(b"PK\x03\x04")
    told = json.loads(in_cell(LooksAt((*files, tmp_path / "zip.xlsx")), LIMITS, "sheets"))
    assert told == [
        "deep.xlsx has no sheet with cells.",
        "entities.xlsx cannot be read as an Excel file.",
        (
            "wide.xlsx has 16384 columns, and a schema declares at most 500: leave out those that "
            "analysts do not need."
        ),
        told[3],
        "1 columns",
        "zip.xlsx cannot be read as an Excel file.",
    ]
    assert told[3].startswith("broken.xlsx ")


@pytest.mark.slow
def test_a_cell_far_away_takes_no_memory_but_its_own(plain: Path, tmp_path: Path) -> None:
    """The rectangle of 2³⁴ cells between two: the parser ends, and its process alone."""
    last = '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
    with pytest.raises(CuratorError, match="takes more than 256 MB of memory"):
        looked(Look(sheet(plain, tmp_path, "far", SHEET.format(FIRST + last)), MB))


def test_an_archive_is_refused_by_what_its_directory_says(
    plain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sheet_file, "MOST_UNPACKED", 2000)
    sheet_file._opened.cache_clear()
    with pytest.raises(CuratorError, match="holds more than"):
        propose(plain)


@pytest.mark.audit
@pytest.mark.parametrize("suffix", [".sav", ".dta", ".xpt", ".xlsx"])
def test_changed_bytes_end_in_a_table_or_in_a_sentence(
    suffix: str, plain: Path, tmp_path: Path
) -> None:
    """Also where the parser crashes: pyreadstat 1.3.7 does for some headers of SPSS."""
    frame = pd.DataFrame({"id": [1.0, 2.0, 3.0], "sex": [1.0, 2.0, 1.0], "name": ["a", "b", "c"]})
    file = tmp_path / f"a{suffix}"
    labels = {"sex": {1: "Male", 2: "Female"}}
    if suffix == ".sav":
        pyreadstat.write_sav(frame, str(file), variable_value_labels=labels)
    elif suffix == ".dta":
        pyreadstat.write_dta(frame, str(file), variable_value_labels=labels)
    elif suffix == ".xpt":
        pyreadstat.write_xport(frame, str(file))
    else:
        file = plain
    for start in range(0, 200, 25):
        assert told(LooksAtChanged(file, tmp_path, range(start, start + 25)), file.name)


def told(order: LooksAtChanged, name: str) -> bool:
    """Whether the cell has said how many could be read, or its end was told in the usual
    sentence.
    """
    try:
        return in_cell(order, CHANGED, name).endswith(b" of 25")
    except CuratorError as error:
        return error.detail.startswith(f"{name} cannot be read: it is broken")
