# SPDX-License-Identifier: Apache-2.0
"""Files as they are on disk: how they are read is understood from their cells, or asked; nothing is
edited.
"""

from pathlib import Path

import pyarrow as pa
import pytest
import yaml

from reticent_server.catalog.schema_file import read_schema
from reticent_server.domain.reading import PLAIN, STYLES, UNSAID, NumberStyle, Reading, read_reading
from reticent_server.domain.schema import USUAL_MARKERS
from reticent_server.errors import CuratorError
from reticent_server.vault.column_scan import ColumnScan
from reticent_server.vault.csv_file import csv_blocks
from reticent_server.vault.draft import ProposedColumn, propose
from reticent_server.vault.files import file_format
from reticent_server.vault.number_texts import plain_numbers
from reticent_server.vault.understanding import understood
from support.databases.vaults import Vault
from support.tables.drafts import draft_schema
from support.tables.files import GERMAN, PENGUINS


def written(folder: Path, content: str | bytes, name: str = "rows.csv") -> Path:
    file = folder / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def columns(file: Path, said: Reading = UNSAID) -> dict[str, ProposedColumn]:
    return {column.source: column for column in propose(file, said).columns}


def test_penguins_as_they_are(tmp_path: Path) -> None:
    proposal = propose(written(tmp_path, PENGUINS, "penguins_raw.csv"))
    known = {column.source: column for column in proposal.columns}
    assert proposal.reading == Reading("csv", "utf-8", "comma", "double", "point", "none", 1)
    assert (proposal.rows, proposal.whole, proposal.questions) == (5, True, ())
    assert (known["Date Egg"].kind, known["Date Egg"].form) == ("date", "%Y-%m-%d")
    assert known["Culmen Length (mm)"].name == "Culmen_Length_mm"
    assert (known["Culmen Length (mm)"].kind, known["Body Mass (g)"].kind) == ("numeric", "numeric")
    assert "integer, if they are so by definition" in known["Body Mass (g)"].seen
    assert known["Body Mass (g)"].found == ("NA",)
    assert known["Sex"].found == (".", "NA")
    assert {column.missing for column in proposal.columns} == {USUAL_MARKERS}
    assert known["Clutch Completion"].kind == "boolean"
    assert proposal.of("Stage")[0] == "Adult, 1 Egg Stage"


def test_a_german_spreadsheets_text(tmp_path: Path) -> None:
    """Semicolons, decimal commas, points between thousands, Windows-1252, a title, and rows of
    separators at the end.
    """
    proposal = propose(written(tmp_path, GERMAN.encode("cp1252")))
    known = {column.source: column for column in proposal.columns}
    assert proposal.reading == Reading(
        "csv", "windows-1252", "semicolon", "double", "comma", "point", 3
    )
    assert proposal.rows == 3
    assert list(known) == ["Größe", "Einkommen", "Aufnahme", "Ort"]
    assert (known["Größe"].name, known["Größe"].kind) == ("Grosse", "numeric")
    assert (known["Einkommen"].kind, known["Einkommen"].found) == ("numeric", ("k.A.",))
    assert (known["Aufnahme"].form, known["Aufnahme"].found) == ("%d.%m.%Y", ("",))
    assert proposal.of("Ort") == ("München", "Köln", "Köln")


def test_what_is_understood_is_loaded_and_what_is_said_is_not_guessed(
    sqlite_vault: Vault, tmp_path: Path
) -> None:
    file = written(tmp_path, GERMAN.encode("cp1252"))
    text = draft_schema(file).splitlines()
    body = [line.replace("lower: , upper: ", "lower: 0, upper: 100000") for line in text]
    kept = [line for line in body if "Ort" not in line and "Aufnahme" not in line]
    (tmp_path / "s.yaml").write_text("\n".join(kept))
    schema = read_schema(tmp_path / "s.yaml")
    assert schema.reading.separator == "semicolon"
    source = sqlite_vault.load(file, schema).source
    read = sqlite_vault.read(source, ["Grosse", "Einkommen"]).to_pydict()
    assert read["Grosse"] == [1.75, 1.8, 1.66]
    assert read["Einkommen"] == [1234.5, 0.0, 12000.0]
    assert read["Einkommen:missing"] == [False, True, False]
    alone = "\n".join(line for line in kept if not line.startswith("file:"))
    (tmp_path / "s.yaml").write_text(alone)  # nothing is said: the same is understood
    again = sqlite_vault.load(file, read_schema(tmp_path / "s.yaml")).source
    assert sqlite_vault.read(again, ["Einkommen"]).to_pydict()["Einkommen"][0] == 1234.5
    (tmp_path / "s.yaml").write_text(alone + "\nfile: {separator: tab}\n")
    with pytest.raises(CuratorError, match="looks like `separator: semicolon`"):
        sqlite_vault.load(file, read_schema(tmp_path / "s.yaml"))


ENCODINGS = {
    "utf-8": "é".encode(),
    "utf-8 with a mark": "\ufeffé".encode(),
    "utf-16": "é".encode("utf-16"),
    "windows-1252": b"\x80\xe9",
    "latin-1": b"\x81\xe9",
}


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_encodings(tmp_path: Path, encoding: str) -> None:
    codec = {"utf-16": "utf-16-le", "windows-1252": "cp1252", "latin-1": "latin-1"}
    rest = ";x\n1;2\n3;4\n".encode(codec.get(encoding, "utf-8"))
    proposal = propose(written(tmp_path, ENCODINGS[encoding] + rest))
    assert proposal.reading.encoding == encoding.removesuffix(" with a mark")
    assert proposal.columns[0].source.endswith("é")
    assert not proposal.columns[0].source.startswith("\ufeff")


SEPARATED = {
    "a,b\n1,2\n3,4\n": ("comma", 1),
    "a;b\n1,5;2,5\n3,5;4,5\n": ("semicolon", 1),
    "a\tb\n1\t2\n": ("tab", 1),
    "a|b\n1|2\n": ("pipe", 1),
    "'a','b'\n'1','x, y'\n'2','z'\n": ("comma", 1),
    'note\n"a, b"\n"c; d"\n': ("comma", 1),
    "1;2\n3;4\n": ("semicolon", 0),
    "country,2019,2020\nA,1,2\nB,3,4\n": ("comma", 1),
    "Report\n\nmade in May\na;b;c\n1;2;3\n4;5;6\n": ("semicolon", 4),
    "x\n1\n2\n": ("comma", 1),
    ",,score\na,1,2.5\nb,2,3.5\n": ("comma", 1),
    ",,score,g\na,1,2.5,x\nb,2,3.5,y\n": ("comma", 1),
    '"a" "b"\n1 "x y"\n2 "z"\n': ("blanks", 1),
    "  a     b  \n1,5   2,25\n 13\t 4,75 \n": ("blanks", 1),
    " 1  2\n13  4\n": ("blanks", 0),
    "a, b\n1, 2\n3, 4\n": ("comma", 1),
    "remark\nall is well\nfine\n": ("comma", 1),
}


@pytest.mark.parametrize("text", SEPARATED)
def test_separators_and_headers(tmp_path: Path, text: str) -> None:
    proposal = propose(written(tmp_path, text))
    assert (proposal.reading.separator, proposal.reading.header) == SEPARATED[text]
    if not proposal.reading.header:
        assert [column.source for column in proposal.columns] == ["column_1", "column_2"]


def test_what_r_writes_with_its_row_names(tmp_path: Path) -> None:
    """write.table's default: blanks between cells, and no name above the row names."""
    text = '"score" "ward"\n' + "".join(f'"{k}" {k}.5 "ward  {k % 2}"\n' for k in range(1, 5))
    proposal = propose(written(tmp_path, text))
    assert (proposal.reading.separator, proposal.reading.header) == ("blanks", 1)
    read = {column.source: proposal.of(column.source) for column in proposal.columns}
    assert read == {
        "column_1": ("1", "2", "3", "4"),
        "score": ("1.5", "2.5", "3.5", "4.5"),
        "ward": ("ward  1", "ward  0", "ward  1", "ward  0"),
    }


def test_notes_below_a_table_of_text_are_left_out_where_that_is_said(tmp_path: Path) -> None:
    file = written(tmp_path, "a,b\n1,2\n3,4\n\nSource: the ward\n\nMade in May\n")
    with pytest.raises(CuratorError, match=r"Row 3 \(line 5\).*no records: `skip_last: 2`"):
        propose(file)
    assert propose(file, Reading(skip_last=2)).of("b") == ("2", "4")


NUMBERS = {
    ("1,5", "1234,25"): NumberStyle("comma"),
    ("1.234.567,5", "12"): NumberStyle("comma", "point"),
    ("1,234,567", "2.5"): NumberStyle("point", "comma"),
    ("1 234,5", "7"): NumberStyle("comma", "blank"),
    ("1\u202f234.5", "7"): NumberStyle("point", "blank"),
    ("1'234.5", "7"): NumberStyle("point", "apostrophe"),
    ("1.234", "0.5"): PLAIN,
    ("12", "13"): PLAIN,
}


@pytest.mark.parametrize("texts", NUMBERS)
def test_numbers_of_every_style(tmp_path: Path, texts: tuple[str, ...]) -> None:
    proposal = propose(written(tmp_path, "x\ty\n" + "".join(f"{t}\ta\n" for t in texts)))
    assert proposal.reading.numbers == NUMBERS[texts]
    assert proposal.columns[0].kind in {"numeric", "integer"}


def test_a_number_has_one_value_in_one_style_and_none_in_others() -> None:
    cells = pa.array(
        ["1.234,5", "1,234.5", "1234", "12,34", "0.123", "1,23,456", ".5", "-,5", "1e3"]
    )
    values = {style: plain_numbers(cells, style).to_pylist() for style in STYLES}
    assert values[PLAIN] == [None, None, "1234", None, "0.123", None, ".5", None, "1e3"]
    groups = values[NumberStyle("comma", "point")]
    assert groups == ["1234.5", None, "1234", "12.34", None, None, None, "-.5", "1e3"]
    assert values[NumberStyle("point", "comma")][:2] == [None, "1234.5"]


ASKED = {
    'x\ty\n"1,234"\ta\n"2,345"\tb\n': "decimal: comma",
    "x;y\n1.234;a\n2.345;b\n": "decimal: point",
    "d\tx\n01/02/2020\t1\n03/04/2020\t2\n": "month first",
}


@pytest.mark.parametrize("text", ASKED)
def test_what_can_be_read_in_two_ways_is_asked(tmp_path: Path, text: str) -> None:
    file = written(tmp_path, text)
    proposal = propose(file)
    assert len(proposal.questions) == 1
    assert ASKED[text] in proposal.questions[0]
    (tmp_path / "s.yaml").write_text(
        draft_schema(file).replace("lower: , upper: ", "lower: 0, upper: 9")
    )
    with pytest.raises(CuratorError, match="ill in"):
        read_schema(tmp_path / "s.yaml")
    said = Reading(decimal="comma", thousands="none", dates="day-first")
    assert propose(file, said).questions == ()


def test_the_order_of_day_and_month_is_decided_by_any_column(tmp_path: Path) -> None:
    text = "a,b\n01/02/2020,13/02/2020\n03/04/2020,01/02/2020\n"
    assert [c.form for c in propose(written(tmp_path, text)).columns] == ["%d/%m/%Y"] * 2
    text = "a\n02/13/20\n"
    assert propose(written(tmp_path, text)).columns[0].form == "%m/%d/%y"


DATES = {
    "2020-01-31": "%Y-%m-%d",
    "2020-01-31T10:20:30": "%Y-%m-%d",
    "2020/01/31": "%Y/%m/%d",
    "31.01.2020": "%d.%m.%Y",
    "31.1.20": "%d.%m.%y",
    "31.01.2020 12:00": "%d.%m.%Y %H:%M",
    "31/01/2020": "%d/%m/%Y",
    "31-01-2020": "%d-%m-%Y",
    "01/31/2020 9:05:00": "%m/%d/%Y %H:%M:%S",
    "31 Jan 2020": "%d %b %Y",
    "31JAN2020": "%d%b%Y",
    "31-jan-20": "%d-%b-%y",
    "January 31, 2020": "%b %d, %Y",
}


def test_dates_of_every_usual_form(tmp_path: Path) -> None:
    header = "\t".join(f"d{k}" for k in range(len(DATES)))
    file = written(tmp_path, f"{header}\n" + "\t".join(DATES) + "\n")
    assert [column.form for column in propose(file).columns] == list(DATES.values())


def test_the_shortest_date_is_one_and_what_is_shorter_or_has_no_digit_is_none() -> None:
    assert scanned("1.2.03").forms == ("%d.%m.%y",)
    assert scanned("1.2.3", "1.2.03").forms == scanned("Monday").forms == ()
    assert scanned("2020-01-31", "yesterday").forms == ()


def scanned(*texts: str) -> ColumnScan:
    scan = ColumnScan()
    scan.add(pa.array(texts))
    return scan


def test_all_markers_are_found_and_codes_only_where_they_are_clearly_outside() -> None:
    everything = ("", "#N/A", "-99", ".", "NA", "Unknown")
    assert scanned("1", *everything).missing() == everything
    assert scanned("-99", "-98", "-50", "10").missing() == ()  # temperatures
    assert scanned("1", "2", "5", "99").missing() == ("99",)
    assert scanned("1", "97", "98", "99").missing() == ()
    assert scanned("20", "80", "999").missing() == ("999",)
    assert scanned("0", "30", "-9").missing() == ()
    assert scanned("0", "3", "-9").missing() == ("-9",)
    assert scanned("99", "99").missing() == ()
    assert scanned("a", "99").missing() == ()


FOREIGN = {
    b"\xd0\xcf\x11\xe0rest": "before 2007",
    b"\x1f\x8b\x08": "gzip",
    b"%PDF-1.7": "PDF",
    b"\x1c" + bytes(7) + b"ENCRYPTEDSAV\x15": "encrypted file of SPSS",
    b"SQLite format 3\0": "dataset register",
}


@pytest.mark.parametrize("content", FOREIGN)
def test_files_brought_by_mistake(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(CuratorError, match=FOREIGN[content]):
        file_format(written(tmp_path, content))


def test_all_problems_at_once(sqlite_vault: Vault, tmp_path: Path) -> None:
    schema = tmp_path / "s.yaml"
    schema.write_text(
        "columns:\n  x: {kind: numeric, lower: 0, upper: 9}\n  g: {kind: categorical, levels: "
        '["a", "b"]}\n'
    )
    rows = ["1,a", "NA,c", "?,a", "NA,", "2,a,3", "NA,b", "3"]
    with pytest.raises(CuratorError) as refused:
        sqlite_vault.load(written(tmp_path, "x,g\n" + "\n".join(rows) + "\n"), read_schema(schema))
    assert refused.value.detail == (
        "In row 2 (line 3), column x: 'NA' is not a finite number (so in row 4 (line 5)); "
        "in row 3 (line 4): '?' is not a finite number. "
        "In row 2 (line 3), column g: 'c' is not one of the declared levels; "
        "in row 4 (line 5): the cell is missing; give the column `missing` markers, or fill the "
        "cell. "
        "Row 5 (line 6) must have 2 cells, like the header, but has 3. "
        "Row 7 (line 8) must have 2 cells, like the header, but has 1."
    )
    assert sqlite_vault.stored_tables() <= sqlite_vault.kept


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"separator": ";"}, "separator must be one of"),
        ({"header": "1"}, "header must be a line"),
        ({"header": -1}, "header must be a line"),
        ({"decimal": "comma", "thousands": "comma"}, "different signs"),
        ({"colour": "red"}, "is not known"),
        ({"sheet": 3}, "sheet must be the quoted name"),
        ({"skip_last": "2"}, "skip_last must be a number of rows from 0"),
        ({"skip_last": -1}, "skip_last must be a number of rows from 0"),
    ],
)
def test_what_is_said_is_checked(said: dict[object, object], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_reading(said)


@pytest.mark.parametrize("codec", ["utf-32", "utf-32-le", "utf-32-be"])
def test_utf_32_is_said(tmp_path: Path, codec: str) -> None:
    mark = {"utf-32-le": "\ufeff", "utf-32-be": "\ufeff"}.get(codec, "")
    with pytest.raises(CuratorError, match="is UTF-32, which is not read: save it as UTF-8"):
        propose(written(tmp_path, f"{mark}a,b\n1,2\n".encode(codec)))


@pytest.mark.parametrize("content", [b"a,b\n1,\x002\n3,4\n", "a,b\n1,2\n".encode("utf-16-le")])
def test_zero_bytes_are_refused_in_a_sentence(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(CuratorError, match="zero bytes: it is no text, or UTF-16 without"):
        propose(written(tmp_path, content), UNSAID)


MIXED = "a;b;c\n" + "1.234,50;12;x\n1,234.50;13;y\n2.345,10;14,5;z\n" * 3


def test_numbers_that_are_written_in_two_ways_are_no_silent_categories(tmp_path: Path) -> None:
    """The preview says so; of a column of words it does not."""
    proposal = propose(written(tmp_path, MIXED))
    known = {column.source: column for column in proposal.columns}
    assert (known["a"].kind, known["b"].kind) == ("categorical", "numeric")
    assert "not all written in one way" in known["a"].warning
    assert known["b"].warning == known["c"].warning == ""


ROWS = 12
NEIGHBOURS = {
    "a marker": ("7", "unknown"),
    "another marker": ("7", "keine Angabe"),
    "an empty cell": ("7", ""),
    "a number that is not whole": ("7", "3.5"),
    "a code": ("7", "-99"),
    "a word": ("7", "seven"),
    "a third answer": ("yes", "maybe"),
    "no date": ("2020-01-31", "soon"),
    "another form of date": ("31.12.2020", "2020-01-31"),
    "another level": ("a", "b"),
    "0 among ones": ("1", "2"),
    "the only cell": ("", "7"),
}


@pytest.mark.parametrize("case", NEIGHBOURS)
def test_no_single_cell_decides_what_a_draft_says(tmp_path: Path, case: str) -> None:
    """The schema is published: files that differ in one cell have the same draft."""
    usual, other = NEIGHBOURS[case]
    drafts = set()
    for k, cell in enumerate((usual, other)):
        rows = "".join(f"{usual},x\n" for _ in range(ROWS - 1)) if usual else ",x\n" * 40
        file = written(tmp_path, f"v,w\n{rows}{cell},x\n", f"{k}.csv")
        drafts.add(draft_schema(file).replace(f"{k}.csv", ""))
    assert len(drafts) == 1


def test_what_is_found_besides_is_told_beside_the_draft(tmp_path: Path) -> None:
    """Of texts that are no numbers, of codes, and of flags; none of it stands in the draft."""
    cells = ["12", "9", "31", "k. A.", "5", "-99", "16", "7", "8", "20,5", "entfällt", "30"]
    text = "alter;kind\n" + "".join(f"{cell};{k % 2}\n" for k, cell in enumerate(cells))
    file = written(tmp_path, text)
    known = columns(file)
    assert (known["alter"].kind, known["alter"].found) == ("numeric", ("-99", "k. A."))
    assert "1 of the cells looked at are something else, such as 'entfällt'" in (
        known["alter"].warning
    )
    assert "'-99' may stand for missing cells" in known["alter"].warning
    assert "0 and 1 alone" in known["kind"].seen
    draft = draft_schema(file)
    assert not any(found in draft for found in ("-99", "entfällt", "0 and 1 alone"))


def test_prices_with_signs_between_thousands_have_no_code(tmp_path: Path) -> None:
    """999 is a price among 1.299 and 1.999."""
    cells = ["999", "1.299", "1.999", "1.199", "999", "1.899"] * 4
    text = "preis;kg\n" + "".join(f"{cell};5,{k}\n" for k, cell in enumerate(cells))
    (price, _) = propose(written(tmp_path, text)).columns
    assert (price.kind, price.found, price.warning) == ("numeric", (), "")


WORDS = ("ja", "nein"), ("oui", "non"), ("Sí", "No"), ("WAHR", "FALSCH"), ("Y", "N")


@pytest.mark.parametrize("words", WORDS)
def test_words_of_other_languages_are_booleans(
    sqlite_vault: Vault, tmp_path: Path, words: tuple[str, str]
) -> None:
    file = written(tmp_path, "a,b\n" + "".join(f"{w},1\n" for w in (*words, *words)))
    draft = draft_schema(file)
    assert "a: {kind: boolean, missing:" in draft
    (tmp_path / "s.yaml").write_text(draft.replace("lower: , upper: ", "lower: 0, upper: 2"))
    source = sqlite_vault.load(file, read_schema(tmp_path / "s.yaml")).source
    assert sqlite_vault.read(source, ["a"]).to_pydict()["a"] == [1, 0, 1, 0]


IDENTIFIERS = {
    "patient_id": [str(7 * k % 101) for k in range(40)],
    "PatientID": [f"P{k % 20}" for k in range(40)],
    "ID": [str(k) for k in range(40)],
    "Nr": [str(900 - 3 * k) for k in range(40)],
    "zeile": [str(1000 + k) for k in range(40)],
    "code": [f"{k:05x}" for k in range(50, 90)],
}
MEASURES = {
    "income": [str(1000 + 7 * k % 101) for k in range(40)],
    "ward_id": [str(k % 2) for k in range(40)],
    "valid": [str(20 + k % 7) for k in range(40)],
    "group": ["ab"[k % 2] for k in range(40)],
}


def test_identifiers_are_noticed_and_left_out_of_the_draft(tmp_path: Path) -> None:
    table = IDENTIFIERS | MEASURES
    rows = zip(*table.values(), strict=True)
    file = written(tmp_path, ",".join(table) + "\n" + "".join(",".join(r) + "\n" for r in rows))
    known = columns(file)
    assert {name for name, column in known.items() if "identifier" in column.idle} == (
        set(IDENTIFIERS)
    )
    loaded = yaml.safe_load(draft_schema(file))["columns"]
    assert set(loaded) == set(MEASURES)


def test_a_file_that_is_written_otherwise_than_the_schema_says_is_told_how(tmp_path: Path) -> None:
    """Not by a header with signs of the wrong encoding."""
    said = Reading("csv", "windows-1252", "semicolon", "double", "comma", "point", 3)
    wanted = ["Größe", "Ort"]
    cp1252, utf8 = (written(tmp_path, GERMAN.encode(code), code) for code in ("cp1252", "utf-8"))
    assert understood(cp1252, said, wanted, ["Größe"]) == said
    with pytest.raises(CuratorError) as caught:
        understood(utf8, said, wanted, ["Größe"])
    assert "`encoding: windows-1252`, and this file looks like `encoding: utf-8`" in str(
        caught.value
    )
    assert "Ã" not in str(caught.value)
    with pytest.raises(CuratorError, match=r"has no column 'Alter'"):
        list(csv_blocks(cp1252, ["Alter"], understood(cp1252, said, ["Alter"], []), None))
