# SPDX-License-Identifier: Apache-2.0
"""Statistics of a column that are safe in a bin: what the range and the median by
propose–test–release share.

For all n records of one column, without missing cells, of a table whose unit is a row. Proof:
mechanisms.stable_bin. Source: Dwork & Smith (2009), §3.2; Dwork & Lei (2009).
"""

from math import ceil, floor, log

from reticent_server.domain.columns import GeometricBins, StableBin
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import ColumnStep, Released
from reticent_server.fitting.results import Value
from reticent_server.kinds.shared.columns import ColumnsMap
from reticent_server.mechanisms import ptr
from reticent_server.numerics.lattices import lattice_between

SORT_NANOSECONDS = 400  # planned to sort one record; measured: 90


def iqr_part(facts: DatasetFacts, column: Column, epsilon: int, delta: int) -> StableBin:
    """Bins of ratio 1 + 1/ln n from one lattice step to the range of the bounds."""
    lattice = lattice_between(column.lower, column.upper)
    ratio = 1 + 1 / log_n(facts.n)
    count = ceil(log(max(lattice.size, 2)) / log(ratio)) + 2
    return StableBin("iqr", lattice, GeometricBins(1.0, ratio, count), epsilon, delta)


def log_n(n: int) -> float:
    """ln n, at least 1."""
    return max(log(n), 1.0)


def stable_step(label: str, part: StableBin, column: Column) -> ColumnStep:
    """The step of one part on one column."""
    return ColumnStep(label, (part,), ColumnsMap((column.name,)))


def value_in_bin(column: Column, released: Released, n: int) -> Value:
    """The reply of a released bin's middle and ends; of whole numbers, the ends that hold it, and
    the whole number next to the middle."""
    value, low, high = released.values.tolist()
    if column.kind.is_whole:
        value, low, high = float(round(value)), float(floor(low)), float(ceil(high))
    return Value(value=value, bin=(low, high), n=n)


def margin_needed(part: StableBin) -> int:
    """The margin, in records, from which the release is nearly sure: ⌈ln(1/δ)/ε⌉
    (mechanisms.ptr)."""
    return ptr.threshold(part.epsilon, part.delta)
