"""What is public about one version of a data set: all that planning may look at."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from reticent_server.domain.schema import Schema

PROFILE_PROBABILITIES: tuple[float, ...] = tuple(k / 20 for k in range(1, 20))


@dataclass(frozen=True, slots=True)
class ColumnProfile:
    """One column's released profile.

    quantiles: at PROFILE_PROBABILITIES, for numeric and integer columns that are not dummies.
    counts: noisy counts by level (two for a dummy: 0 and 1) for the others.
    missing: noisy number of missing cells, for columns that may be missing.
    """

    quantiles: tuple[float, ...] | None = None
    counts: tuple[float, ...] | None = None
    missing: float | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    """A released profile of one version; `release_id` names its entry in the ledger."""

    columns: Mapping[str, ColumnProfile]
    release_id: str = ""


@dataclass(frozen=True, slots=True)
class Policy:
    """What the curator allows on a data set. default_delta None means min(1e-6, 1/(10 n)).

    second_person: whether a cap, a credit, a change of policy and a new version about its population need
    somebody else's approval.
    """

    tiers: tuple[str, ...] = ("unconditional",)
    max_epsilon: float | None = None
    default_delta: float | None = None
    second_person: bool = False


@dataclass(frozen=True, slots=True)
class DatasetFacts:
    """Public facts of the current version of a data set."""

    name: str
    population: str
    version: int
    version_id: str
    n: int
    schema: Schema
    profile: Profile | None = None
    policy: Policy = field(default_factory=Policy)

    @property
    def default_delta(self) -> float:
        return self.policy.default_delta or min(1e-6, 1 / (10 * self.n))
