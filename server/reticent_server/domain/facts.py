# SPDX-License-Identifier: Apache-2.0
"""What is public about one version of a data set: all that planning may look at."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from reticent_server.domain.schema import Column, Schema

# probabilities between the smallest and .05, and their mirrors: tails set clipping and scales
_TAIL: tuple[float, ...] = (0.005, 0.01, 0.025)
PROFILE_PROBABILITIES: tuple[float, ...] = (
    *_TAIL,
    *(k / 20 for k in range(1, 20)),
    *(1 - p for p in reversed(_TAIL)),
)
"""Probabilities of a profile's quantiles: twentieths, and tails that show spikes and heavy ends."""


@dataclass(frozen=True, slots=True)
class ColumnProfile:
    """One column's released profile.

    quantiles: at `probabilities`, for numeric and integer columns that are not dummies.
    counts: noisy counts by value, of the levels (two for a dummy: 0 and 1) or, of an integer column
    with few values, of the whole numbers from `first` on; count_sd: the noise of one of them.
    missing: noisy number of missing cells, for columns that may be missing.
    """

    quantiles: tuple[float, ...] | None = None
    counts: tuple[float, ...] | None = None
    missing: float | None = None
    probabilities: tuple[float, ...] = PROFILE_PROBABILITIES
    first: float = 0.0
    count_sd: float | None = None

    def known_quantiles(self) -> dict[float, float]:
        """The quantiles by the probability that each is of; a wide column has few of them."""
        return dict(zip(self.probabilities, self.quantiles or (), strict=False))

    def counted(self, column: Column) -> dict[str, float]:
        """The counts by the value that each is of: a level, or a whole number."""
        counts = self.counts or ()
        labels = column.levels or tuple(f"{self.first + i:g}" for i in range(len(counts)))
        return dict(zip(labels, counts, strict=False))


@dataclass(frozen=True, slots=True)
class Profile:
    """A released profile of one version; `release_id` names its entry in the ledger."""

    columns: Mapping[str, ColumnProfile]
    release_id: str = ""


@dataclass(frozen=True, slots=True)
class Policy:
    """What the curator allows on a data set. default_delta None means min(1e-6, 1/(10 n)).

    second_person: whether a cap, a credit, a change of policy and a new version about its
    population need somebody else's approval. protocol_required: whether a question is answered
    only as part of a protocol that was accepted.
    """

    tiers: tuple[str, ...] = ("unconditional",)
    max_epsilon: float | None = None
    default_delta: float | None = None
    second_person: bool = False
    protocol_required: bool = False


@dataclass(frozen=True, slots=True)
class DatasetFacts:
    """Public facts of the current version of a data set. n: rows; where the unit is a column,
    persons.

    persons: their number N, where n is that of places (of_places).
    """

    name: str
    population: str
    version: int
    version_id: str
    n: int
    schema: Schema
    profile: Profile | None = None
    policy: Policy = field(default_factory=Policy)
    persons: int | None = None

    @property
    def least_records(self) -> int:
        """So many records there are at least, but for persons without any: persons, or all n."""
        return self.n if self.persons is None else self.persons

    @property
    def slots(self) -> int:
        """Places for rows: N·m where the unit is a column of up to m rows a person, else n. What
        deadlines, blocks and bounds of sums over rows come from: how many of the places hold a row
        is private."""
        return self.n * self.schema.unit.max_rows

    def of_places(self) -> "DatasetFacts":
        """The table as kinds see it: n places, of which any may be without a row (Design.masked),
        and `persons`."""
        if not self.schema.unit.many_rows:
            return self
        return replace(self, n=self.slots, persons=self.n)

    @property
    def default_delta(self) -> float:
        """The policy's delta, or min(10⁻⁶, 1/(10n)) where it sets none."""
        return self.policy.default_delta or min(1e-6, 1 / (10 * self.n))
