# SPDX-License-Identifier: Apache-2.0
"""A data set's public schema."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reticent._dates import date_text


@dataclass(frozen=True, slots=True)
class Column:
    """A declared column. lower, upper: declared bounds of a number; of a date days since
    1970-01-01. levels: of a categorical one. derived: how it was computed from other columns, if it
    was. role: "weight" of what a record counts for in the population (give its name as `weights=`),
    else empty. label: what people call it, else empty.
    """

    name: str
    kind: str
    lower: float | None = None
    upper: float | None = None
    levels: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    derived: str = ""
    role: str = ""
    label: str = ""

    @classmethod
    def from_json(cls, name: str, content: Mapping[str, Any]) -> "Column":
        """From a data set's public schema. Numeric and integer columns have bounds, others none."""
        numeric = content["kind"] in {"numeric", "integer"}
        return cls(
            name=name,
            kind=next((k for k in ("date", "ordered") if content.get(k)), str(content["kind"])),
            lower=float(content["lower"]) if numeric else None,
            upper=float(content["upper"]) if numeric else None,
            levels=tuple(map(str, content.get("levels") or ())),
            missing=tuple(map(str, content.get("missing") or ())),
            derived=str(content.get("derived") or ""),
            role=str(content.get("role") or ""),
            label=str(content.get("label") or ""),
        )

    @property
    def title(self) -> str:
        """For an axis or a table of a paper: the label, else the name.

        >>> ds.schema["price"].title
        """
        return self.label or self.name

    @property
    def domain(self) -> str:
        """Bounds or levels, as a text."""
        if self.kind == "date" and self.lower is not None and self.upper is not None:
            return f"{date_text(self.lower)} … {date_text(self.upper)}"
        if self.lower is not None:
            return f"{self.lower:g} … {self.upper:g}"
        return ", ".join(self.levels) or "false, true"


@dataclass(frozen=True, slots=True)
class Schema:
    """Columns in order, and what one protected unit is. many_rows: whether how many rows it has is
    private.
    """

    columns: tuple[Column, ...]
    description: str = ""
    unit: str = "row"
    many_rows: bool = False

    @classmethod
    def from_json(cls, dataset: Mapping[str, Any]) -> "Schema":
        """From the data set's document."""
        columns = dataset["schema"]["columns"].items()
        return cls(
            columns=tuple(Column.from_json(name, column) for name, column in columns),
            description=str(dataset["description"]),
            unit=_unit(dataset["unit"]),
            many_rows=dataset["unit"]["max_rows"] > 1 or dataset["unit"].get("gaps", False),
        )

    @property
    def labels(self) -> dict[str, str]:
        """What columns are called, by name, of those that have a label.

        >>> ds.describe(["price"], epsilon=1.0).table(labels=ds.schema.labels)
        """
        return {column.name: column.label for column in self.columns if column.label}

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __getitem__(self, name: str) -> Column:
        """The column of that name. Raises KeyError."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(f"{name}: the columns are {', '.join(c.name for c in self.columns)}")


def _unit(content: Mapping[str, Any]) -> str:
    if content["column"] is None:
        return "row"
    return f"{content['column']} (at most {content['max_rows']} rows)"
