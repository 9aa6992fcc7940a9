# SPDX-License-Identifier: Apache-2.0
"""Files as people have them on disk, of invented people but for the penguins; and what a curator
knows of their columns from the codebook.
"""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import xlsxwriter

from support.seeds import seeded
from support.tables.files import PENGUINS

RAW_PENGUINS = Path("/usr/lib/R/site-library/palmerpenguins/extdata/penguins_raw.csv")
"""Of R's package palmerpenguins (CC0), where it is installed."""

ROWS = 4_000
"""Of an invented file: so many that a regression has intervals at ε = 1."""


@dataclass(frozen=True, slots=True)
class KnownColumn:
    """What a codebook says: bounds of numbers, or levels as the form takes them."""

    lower: str = ""
    upper: str = ""
    levels: str = ""


@dataclass(frozen=True, slots=True)
class FileOnDisk:
    """write: to a path. known: by the column's name in the file; others are not loaded. rows: that
    are loaded.
    """

    name: str
    told: str
    write: Callable[[Path], None]
    known: Mapping[str, KnownColumn] = field(default_factory=dict)


def _penguins(path: Path) -> None:
    if RAW_PENGUINS.exists():
        shutil.copy(RAW_PENGUINS, path)
    else:
        path.write_text(PENGUINS)


def _people() -> list[tuple[int, float, float, str, str, str]]:
    """(age, height in m, income, sex, town, day) of invented people: taller men earn more."""
    draw = seeded(38)
    rows = []
    for _ in range(ROWS):
        is_man = bool(draw.random() < 0.5)
        age = int(draw.integers(18, 80))
        height = round(float(draw.normal(1.78 if is_man else 1.66, 0.06)), 2)
        income = round(float(1_200 + 18 * age + 900 * height + draw.normal(0, 250)), 2)
        town = ("München", "Köln", "Görlitz")[int(draw.integers(3))]
        day = f"{draw.integers(1, 29):02d}.{draw.integers(1, 13):02d}.{draw.integers(2015, 2024)}"
        rows.append((age, height, income, "männlich" if is_man else "weiblich", town, day))
    return rows


_HEADS = ("Alter", "Größe", "Einkommen", "Geschlecht", "Ort", "Aufnahme")
_KNOWN = {
    "Alter": KnownColumn("18", "100"),
    "Größe": KnownColumn("1.2", "2.2"),
    "Einkommen": KnownColumn("0", "6000"),
    "Geschlecht": KnownColumn(levels="männlich\nweiblich"),
    "Ort": KnownColumn(levels="München\nKöln\nGörlitz"),
}


def _german(value: float) -> str:
    """1.234,50."""
    return f"{value:,.2f}".translate(str.maketrans(",.", ".,"))


def _semicolons(path: Path) -> None:
    lines = ["Aufnahmen der Klinik, Auszug", "", ";".join(_HEADS)]
    lines += [
        f"{age};{str(height).replace('.', ',')};{_german(income)};{sex};{town};{day}"
        for age, height, income, sex, town, day in _people()
    ]
    path.write_text("\n".join([*lines, ""]), "utf-8-sig")


def _latin(path: Path) -> None:
    lines = [",".join(_HEADS), *(",".join(map(str, row)) for row in _people())]
    path.write_bytes("\r\n".join([*lines, ""]).encode("latin-1"))


def _sheet(path: Path) -> None:
    with xlsxwriter.Workbook(str(path)) as book:
        note = book.add_worksheet("Hinweise")
        note.write(0, 0, "Stand: 2024")
        sheet = book.add_worksheet("Personen")
        for i, row in enumerate([_HEADS, *_people()]):
            sheet.write_row(i, 0, row)


FILES = (
    FileOnDisk(
        "penguins_raw.csv",
        "The raw file of palmerpenguins: 17 columns, NA and “.” for what is missing",
        _penguins,
        {
            "Species": KnownColumn(
                levels="Adelie Penguin (Pygoscelis adeliae)\nGentoo penguin (Pygoscelis papua)\n"
                "Chinstrap penguin (Pygoscelis antarctica)"
            ),
            "Flipper Length (mm)": KnownColumn("150", "250"),
            "Body Mass (g)": KnownColumn("2000", "7000"),
            "Sex": KnownColumn(levels="FEMALE\nMALE"),
        },
    ),
    FileOnDisk(
        "klinik.csv",
        "Semicolons, decimal commas and points between thousands, two lines before the names",
        _semicolons,
        _KNOWN,
    ),
    FileOnDisk(
        "personen.xlsx", "An Excel workbook whose second sheet is the table", _sheet, _KNOWN
    ),
    FileOnDisk("befragung.csv", "Commas, in Latin-1: umlauts are one byte each", _latin, _KNOWN),
)
