# SPDX-License-Identifier: Apache-2.0
"""The shapes of replies, for the OpenAPI document and the contract tests."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class _Reply(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ColumnReply(_Reply):
    """A declared column. Bounds and levels are the curator's, never read off the data; of dates
    they are days since 1970-01-01.
    """

    kind: Literal["numeric", "integer", "categorical", "boolean"]
    lower: float | None
    upper: float | None
    levels: list[str] | None
    missing: list[str] = Field(description="Cell texts that mean missing; empty: none is.")
    ordered: bool = Field(
        description="Whether its levels are declared from the lowest to the highest."
    )
    date: bool = Field(description="Whether its whole numbers are days since 1970-01-01.")
    derived: str | None = Field(
        description="How the column was computed from others; null: it was not."
    )
    role: Literal["weight"] | None = Field(
        description=(
            "weight: what a record counts for in the population, for a question's field `weights`."
        )
    )
    label: str | None = Field(description="What people call the column; null: nothing is declared.")


class SchemaReply(_Reply):
    """A data set's columns by name, as far as they are public."""

    columns: dict[str, ColumnReply]


class UnitReply(_Reply):
    """The protected unit: a row (column null), or the rows that share a value of `column`. gaps: a
    unit has one row at most, and may have none.
    """

    column: str | None
    max_rows: int
    gaps: bool


class ColumnProfileReply(_Reply):
    """Released figures of a column: quantiles (numeric) or counts (levels), and how many are
    missing."""

    quantiles: list[float] | None
    counts: list[float] | None
    missing: float | None


class ProfileReply(_Reply):
    """The released profile: quantiles at `probabilities`, noisy counts by level."""

    release_id: str
    probabilities: list[float]
    columns: dict[str, ColumnProfileReply]


class PolicyReply(_Reply):
    """What a data set's curator allows: tiers of proof, the largest epsilon of a query, the usual
    delta, and whether a request has to name an accepted protocol."""

    tiers: list[str]
    max_epsilon: float | None
    default_delta: float
    protocol_required: bool


class DatasetReply(_Reply):
    """What is public about a data set."""

    name: str
    version: int
    n: int
    description: str
    unit: UnitReply
    schema_: SchemaReply = Field(alias="schema")
    features: dict[str, str] = Field(
        description=(
            "Features of a person by name, which `persons` of every question has beside its own."
        )
    )
    tables: dict[str, int] = Field(
        description=(
            "Of linked tables, whose columns are named `table.column`: the most rows a person "
            "has in each."
        )
    )
    profile: ProfileReply | None
    policy: PolicyReply


class DatasetsReply(_Reply):
    """The data sets that the caller may ask about."""

    datasets: list[DatasetReply]


class AmountsReply(_Reply):
    """What an account is kept in: epsilon and delta under the rule basic, rho and rho_delta under
    zcdp and gdp.
    """

    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    rho_delta: float | None = None


class AccountReply(_Reply):
    """An account. Under zcdp and gdp rho and rho_delta add up; `total` has the epsilon and delta
    that were given, too, and the epsilon of `spent` and `remaining` is the one that their rho
    implies.
    """

    dataset: str
    project: str | None = Field(description="The shared project's name; null: your own budget.")
    rule: Literal["basic", "zcdp", "gdp"]
    total: AmountsReply
    spent: AmountsReply
    spent_share: float = Field(description="Of the epsilon that is promised, in [0, 1].")
    remaining: AmountsReply


class CoverageReply(_Reply):
    """What a plan costs one account, and what is left there, in the units that it is kept in. Under
    gdp rho is null in `cost` where a question has no price: of selections and tests of safety at a
    larger epsilon than about 2.
    """

    rule: Literal["basic", "zcdp", "gdp"]
    cost: AmountsReply
    remaining: AmountsReply
    covered: bool


class PlanBudgetReply(_Reply):
    """Whether a release would be charged now: to your account, and to that of all analysts of the
    data set; null where no budget is set."""

    covered: bool
    analyst: CoverageReply | None
    dataset: CoverageReply | None


class BudgetReply(_Reply):
    """The caller's accounts, one a data set."""

    accounts: list[AccountReply]


class ProjectReply(_Reply):
    """A project that you are a member of. live: neither closed nor over."""

    name: str
    purpose: str
    members: list[str]
    datasets: list[str]
    ends_on: str | None
    live: bool


class ProjectsReply(_Reply):
    """The shared projects of which the caller is a member."""

    projects: list[ProjectReply]


class RequestReply(_Reply):
    """A request for a project, as you have made it, and how it was decided."""

    id: str
    status: Literal["pending", "approved", "refused"]
    made_at: str
    reason: str | None
    name: str
    purpose: str
    members: list[str]
    ends_on: str | None
    budgets: list[dict[str, Any]]
    plan: list[dict[str, Any]]


class RequestsReply(_Reply):
    """The caller's requests for budget."""

    requests: list[RequestReply]


class ChargeReply(_Reply):
    """What is debited: epsilon and delta under the rule basic, rho and rho_delta under zcdp,
    rho_gdp and rho_delta under gdp (rho_gdp is null of releases of earlier versions, and where the
    price is higher than any budget).
    """

    epsilon: float
    delta: float
    rho: float
    rho_delta: float
    rho_gdp: float | None = None


class GuaranteeReply(_Reply):
    """What is proved about a release: for which unit, with which epsilon and delta, and on what it
    rests."""

    tier: Literal["unconditional", "conditional"]
    unit: str
    epsilon: float
    delta: float
    mechanism: str
    statement: str
    reference: str
    assumptions: list[str]


class PrecisionReply(_Reply):
    """Forecast intervals of 95 %, by name: their width over that without privacy (null: there is no
    such one, or the noise is expected to leave no interval), and half of it (null: not known in the
    units of the data).
    """

    names: list[str]
    ci_ratios: list[float | None]
    half_widths: list[float | None]


class OtherTargetReply(_Reply):
    """The same model with the other target at the same cost, not asked for: its first line, its
    question and its precision.
    """

    answers: str
    query: dict[str, Any]
    precision: PrecisionReply | None


class PlanReply(_Reply):
    """What a release would cost and promise, and its expected errors from public facts. answers:
    the reply's first line; empty where the kind's name says what is estimated. other_target: of
    models that have a robust and a textbook's target.
    """

    dataset: str
    version: int
    query: dict[str, Any]
    cost: ChargeReply
    budget: PlanBudgetReply
    guarantee: GuaranteeReply
    deadline_ms: int
    forecast: dict[str, Any]
    precision: PrecisionReply | None
    answers: str
    other_target: OtherTargetReply | None


class ProgressReply(_Reply):
    """Where a pending release is on its planned schedule, which nothing in the data can change."""

    state: Literal["queued", "running"]
    fraction: float
    remaining_ms: int


class ReleaseReply(_Reply):
    """A release, stored for ever; `result` is null unless `status` is reply, and `progress` is
    there only while it is pending. answers: the reply's first line, which question a model's
    numbers answer.
    """

    id: str
    dataset: str
    version: int
    status: Literal["reply", "no_reply", "pending", "failed", "cancelled"]
    query: dict[str, Any]
    charged: ChargeReply
    guarantee: GuaranteeReply
    result: dict[str, Any] | None
    created_at: str
    answers: str | None = None
    progress: ProgressReply | None = None


class ReleasesReply(_Reply):
    """The caller's releases, newest first; `next_offset` is null on the last page."""

    releases: list[ReleaseReply]
    next_offset: int | None


class HealthReply(_Reply):
    """The process answers."""

    status: Literal["ok"]


class ReadyReply(_Reply):
    """The process answers, and its databases do."""

    status: Literal["ready"]
