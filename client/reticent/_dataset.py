"""A data set as an analyst sees it: public facts for free, answers for epsilon."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import uuid4

from reticent import _advice, _queries
from reticent._checks import finite
from reticent._errors import InvalidQuery, UnexpectedReply
from reticent._http import Http, parsed
from reticent._plan import Plan
from reticent._profile import Profile
from reticent._reading import read
from reticent._release import NoReply, Release
from reticent._schema import Schema
from reticent._statistics import Statistics
from reticent.kinds.hypothesis_test import TestResults
from reticent.kinds.location_scale import LocationScaleResults
from reticent.results.estimate import Estimate
from reticent.results.regression import RegressionResults

Answer = TypeVar("Answer", bound=Release)


@dataclass(frozen=True, slots=True, repr=False)
class Dataset(Statistics):
    """One version of a data set. n: its public number of records. policy: what the curator allows.

    Every method that takes epsilon is charged when it is called, each time. What it raises, and
    what is then not charged: see reticent's errors. delta None: the policy's default.
    idempotency_key: of an earlier call whose reply was lost; the same release is given again.

    >>> ds = client.dataset("houses")
    >>> ds.n, ds.schema["price"].upper, ds.policy["default_delta"]
    """

    name: str
    version: int
    n: int
    schema: Schema
    policy: Mapping[str, Any]
    _profile: Mapping[str, Any] | None
    _http: Http = field(compare=False)
    _project: str | None = None

    @classmethod
    def from_json(
        cls, content: Mapping[str, Any], http: Http, project: str | None = None
    ) -> "Dataset":
        """project: the name of the project that pays; None: the server chooses."""
        return cls(
            name=str(content["name"]),
            version=int(content["version"]),
            n=int(content["n"]),
            schema=Schema.from_json(content),
            policy=dict(content["policy"]),
            _profile=content["profile"],
            _http=http,
            _project=project,
        )

    def profile(self) -> Profile:
        """The codebook and the private quantiles and counts; free.

        >>> ds.profile().quantiles("price")["50%"]
        """
        return parsed(
            lambda found: Profile.from_json(self.name, self.n, self.schema, found), self._profile
        )

    def plan(
        self,
        kind: str | Callable[..., Any],
        *arguments: Any,
        epsilon: float,
        delta: float | None = None,
        target: float | None = None,
        **fields: Any,
    ) -> Plan:
        """What a query would cost and bring; free. The arguments are those of the query's method.

        target: of a linear regression, the privacy standard error relative to the sampling standard
        error for which `epsilon_for` says what epsilon it takes; None: 1 and 0.5.

        >>> ds.plan("linear_regression", "price ~ sqft_living", epsilon=1.0)
        >>> ds.plan(ds.mean, "price", where="grade >= 8", epsilon=0.1).cost
        """
        query = _queries.build(kind, *arguments, **fields)
        body = _queries.body(self.name, query, epsilon, delta, self._project)
        if target is not None:
            body["target"] = finite(target, InvalidQuery("target must be a finite number."))
        with self._advice(query):
            content = self._http.post("/v1/plans", body)
        return parsed(Plan.from_json, content)

    def count(
        self,
        where: str | None = None,
        *,
        epsilon: float,
        delta: float | None = None,
        idempotency_key: str | None = None,
    ) -> Estimate | NoReply:
        """Number of records, or of those for which `where` holds.

        >>> ds.count('grade >= 7 and waterfront == "1"', epsilon=0.1)
        """
        query = _queries.count(where)
        return self._release(Estimate, query, epsilon, delta, idempotency_key)

    def mean(
        self,
        column: str,
        where: str | None = None,
        *,
        epsilon: float,
        delta: float | None = None,
        idempotency_key: str | None = None,
    ) -> Estimate | NoReply:
        """Mean of a column, in its units, over the records that have it and for which `where` holds.

        >>> ds.mean("price", where="grade >= 8", epsilon=0.5)
        """
        query = _queries.mean(column, where)
        return self._release(Estimate, query, epsilon, delta, idempotency_key)

    def linear_regression(
        self,
        formula: str,
        where: str | None = None,
        *,
        epsilon: float,
        delta: float | None = None,
        tuning: float | str | None = None,
        ridge: float | None = None,
        mechanism: str | None = None,
        calibration: str | None = None,
        loss: str | None = None,
        idempotency_key: str | None = None,
    ) -> RegressionResults | NoReply:
        """Robust (Huber–Mallows) regression. tuning: Huber's c; 1.345 where it is None.

        loss: "huber" where it is None; "squared" is least squares with residuals truncated at 4 of their scales and
        leverage at twice Huber's; "tukey" is the biweight, started from a private Huber fit, with c = 4.685.
        tuning="planned" chooses Huber's c and the weights for the smallest error at this ε: what is estimated
        then depends on ε. ridge: λ of the penalty λ/2 times the sum of squared slopes in the units of the data.
        mechanism: "newton" where it is None; "gradient_descent" is the yardstick, and noisier; "influence"
        adds noise to the exact fit, and may give No Reply. calibration: of influence, "ptr" or
        "asymptotic".

        >>> fit = ds.linear_regression("log(price) ~ log(sqft_living) + C(grade)", epsilon=2.0)
        """
        query = _queries.linear_regression(
            formula, where, tuning, ridge, mechanism, calibration, loss
        )
        return self._release(RegressionResults, query, epsilon, delta, idempotency_key)

    def glm(
        self,
        formula: str,
        family: str,
        where: str | None = None,
        *,
        epsilon: float,
        delta: float | None = None,
        tuning: float | str | None = None,
        mechanism: str | None = None,
        calibration: str | None = None,
        dispersion: float | None = None,
        idempotency_key: str | None = None,
    ) -> RegressionResults | NoReply:
        """Robust generalised linear model: family "binomial", "poisson", "gamma", "gaussian" or
        "negative_binomial".

        tuning: where Pearson residuals are cut; the family's default where it is None, "planned" as of
        `linear_regression`. mechanism: "newton" where it is None; "influence" for the binomial family, and may give No Reply.
        calibration: of influence; "ptr" or "asymptotic". dispersion: α of the negative binomial, whose variance
        is μ + αμ²; a public number.

        >>> fit = ds.glm("bedrooms ~ sqft_living + grade", "poisson", epsilon=1.0)
        """
        query = _queries.glm(formula, family, where, tuning, mechanism, calibration, dispersion)
        return self._release(RegressionResults, query, epsilon, delta, idempotency_key)

    def location_scale(
        self,
        column: str,
        where: str | None = None,
        *,
        epsilon: float,
        delta: float | None = None,
        tuning: float | str | None = None,
        mechanism: str | None = None,
        calibration: str | None = None,
        idempotency_key: str | None = None,
    ) -> LocationScaleResults | NoReply:
        """Location and scale of a column, jointly and robustly (Huber's Proposal 2).

        tuning: Huber's c, 1.5 where it is None; "planned" is the smallest error at this ε, and moves what is
        estimated with it. mechanism: "newton" where it is None; "influence" adds noise to the exact solution and needs
        calibration="asymptotic", whose guarantee is conditional.

        >>> ds.location_scale("price", where="grade >= 7", epsilon=1.0)
        """
        query = _queries.location_scale(column, where, tuning, mechanism, calibration)
        return self._release(LocationScaleResults, query, epsilon, delta, idempotency_key)

    def test(
        self,
        formula: str,
        hypothesis: str | Sequence[str] | None = None,
        *,
        epsilon: float,
        delta: float | None = None,
        test: str = "wald",
        family: str | None = None,
        where: str | None = None,
        tuning: float | None = None,
        dispersion: float | None = None,
        idempotency_key: str | None = None,
    ) -> TestResults | NoReply:
        """Tests linear hypotheses, such as "x1 = 0, x2 = x3", in a model that is fitted for it.

        test: "wald", "score" (Rao) or "lr". family None: the linear regression. hypothesis None: a
        table of the model's terms. dispersion: as of `glm`. A Wald test of a fit that was released already is free: see
        `wald_test` of the fit.

        >>> ds.test("price ~ grade + condition", "condition = 0", test="score", epsilon=1.0)
        """
        query = _queries.hypothesis_test(
            formula,
            hypothesis,
            test=test,
            family=family,
            where=where,
            tuning=tuning,
            dispersion=dispersion,
        )
        return self._release(TestResults, query, epsilon, delta, idempotency_key)

    def _release(
        self,
        expected: type[Answer],
        query: _queries.Query,
        epsilon: float,
        delta: float | None,
        idempotency_key: str | None,
    ) -> Answer | NoReply:
        body = _queries.body(self.name, query, epsilon, delta, self._project)
        key = uuid4().hex if idempotency_key is None else idempotency_key
        with self._advice(query):
            answer = read(self._http.release(body, key))
        if isinstance(answer, expected | NoReply):
            return answer
        raise UnexpectedReply("The server answered another kind of query.", idempotency_key=key)

    def submit(
        self,
        kind: str | Callable[..., Any],
        *arguments: Any,
        epsilon: float,
        delta: float | None = None,
        idempotency_key: str | None = None,
        **fields: Any,
    ) -> Release:
        """Asks for a query that is answered later: charged now, a pending release for
        `client.wait(release.id)`, or `client.cancel(release.id)` before it begins. Arguments as in
        `plan`.

        >>> pending = ds.submit("mean", "price", epsilon=0.2)
        >>> client.wait(pending.id)
        """
        query = _queries.build(kind, *arguments, **fields)
        key = uuid4().hex if idempotency_key is None else idempotency_key
        with self._advice(query):
            return read(
                self._http.submit(
                    _queries.body(self.name, query, epsilon, delta, self._project), key
                )
            )

    def _advice(self, query: _queries.Query) -> AbstractContextManager[None]:
        return _advice.on_columns(query, [column.name for column in self.schema])

    def __repr__(self) -> str:
        columns = ", ".join(column.name for column in self.schema)
        return f"<Dataset {self.name}, version {self.version}: {self.n:,} records; {columns}>"
