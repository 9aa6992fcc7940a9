# SPDX-License-Identifier: Apache-2.0
"""A data set as an analyst sees it: public facts for free, answers for epsilon."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from inspect import isfunction
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import quote
from uuid import uuid4

from reticent import _advice, _names, _queries
from reticent import _checks as checks
from reticent._checks import finite
from reticent._errors import InvalidQuery
from reticent._http import Http, another_answer, parsed
from reticent._methods import Methods
from reticent._plan import Plan
from reticent._profile import Profile
from reticent._questions import Query, in_words
from reticent._reading import read, read_all
from reticent._release import NoReply, Release
from reticent._schema import Schema
from reticent._spending import DryRun, Spending, Widths

if TYPE_CHECKING:
    from reticent._power import Power
    from reticent._twin import Twin
    from reticent.kinds.binned_residuals import BinnedResiduals
    from reticent.kinds.hypothesis_test import TestResults
    from reticent.kinds.roc import RocCurve
    from reticent.kinds.study import Study
    from reticent.kinds.subsample_aggregate import BlockResults
    from reticent.kinds.treatment_effect import TreatmentEffectResults
    from reticent.results.coefficients import Coefficients
    from reticent.results.group_regressions import GroupRegressions
    from reticent.results.regression import RegressionResults


@dataclass(frozen=True, slots=True, repr=False)
class Dataset(Methods):
    """One version of a data set. n: its public number of records, or of persons with several rows
    each. policy: what the curator allows.

    Every method that takes epsilon is charged when it is called, each time. What it raises, and
    what is then not charged: see reticent's errors. delta None: the policy's default.
    idempotency_key: of an earlier call whose reply was lost; the same release is given again.

    ci_ratio: instead of epsilon, the widest that an interval may be over the same interval without
    privacy, such as 1.25; half_width: half of the 95 % interval in the units of the data; both for
    every number, or by name. A free plan finds the least epsilon and asks before it is spent, in a
    notebook or at a prompt. Elsewhere ConfirmationNeeded is raised, but for confirm=True, or with
    epsilon as the most that may be spent. dry_run="warn": nothing is spent where the forecast is
    useless (UselessForecast).

    >>> ds = client.dataset("houses")
    >>> ds.mean("grade", ci_ratio=1.5, epsilon=1.0).charged.epsilon
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
    _persons: Mapping[str, str] | None = None
    _document: Mapping[str, Any] = field(default_factory=dict, compare=False)
    _usual: Spending = field(default_factory=Spending, compare=False)
    _protocol: str | None = None

    @classmethod
    def from_json(
        cls,
        content: Mapping[str, Any],
        http: Http,
        project: str | None = None,
        protocol: str | None = None,
    ) -> "Dataset":
        """project: the name of the project that pays; None: the server chooses. protocol: the
        digest that every request names.
        """
        return cls(
            name=str(content["name"]),
            version=int(content["version"]),
            n=int(content["n"]),
            schema=Schema.from_json(content),
            policy=dict(content["policy"]),
            _profile=content["profile"],
            _http=http,
            _project=project,
            _document=content,
            _protocol=protocol,
        )

    def profile(self) -> Profile:
        """The codebook and the private quantiles and counts; free.

        >>> ds.profile().quantiles("price")["50%"]
        """
        return parsed(
            lambda found: Profile.from_json(self.name, self.n, self.schema, found), self._profile
        )

    def ols(
        self, formula: str, where: str | None = None, **more: Any
    ) -> "RegressionResults | GroupRegressions | NoReply":
        """Least squares, as R's `lm`: linear_regression with loss="squared". more: as of
        linear_regression.

        >>> fit = ds.ols("price ~ sqft_living + grade", epsilon=1.0)
        """
        return self._named("ols", formula, where, more)

    def rlm(
        self, formula: str, where: str | None = None, **more: Any
    ) -> "RegressionResults | GroupRegressions | NoReply":
        """A robust linear model: linear_regression with its own loss, Huber's. It describes the
        bulk of skewed data, and differs from least squares there by design. more: as of
        linear_regression.

        >>> fit = ds.rlm("price ~ sqft_living + grade", epsilon=1.0)
        """
        return self._named("rlm", formula, where, more)

    def gee(
        self, formula: str, where: str | None = None, *, working_correlation: float, **more: Any
    ) -> "RegressionResults | GroupRegressions | NoReply":
        """Generalised estimating equations of a normal response with exchangeable rows of a person,
        as R's `geeglm(corstr = "exchangeable")` at this correlation, with errors by person; of
        other families `glm` has independent rows. more: as of linear_regression.

        working_correlation: such as a released `icc` of `study.mixedlm`. Estimates and errors hold
        whatever it is, and are the most precise near the true one.

        >>> panel = client.dataset("clinic")
        >>> fit = panel.gee("bmi ~ day", working_correlation=0.4, epsilon=1.0)
        """
        fields = {"working_correlation": working_correlation} | more
        return self._named("gee", formula, where, fields)

    def logit(
        self, formula: str, where: str | None = None, **more: Any
    ) -> "RegressionResults | GroupRegressions | NoReply":
        """Logistic regression by maximum likelihood, as R's `glm(family = binomial)`. more: as of
        glm.

        >>> fit = ds.logit("sold ~ grade + condition", epsilon=1.0)
        """
        return self._named("logit", formula, where, more)

    def probit(
        self, formula: str, where: str | None = None, **more: Any
    ) -> "RegressionResults | GroupRegressions | NoReply":
        """Probit regression by maximum likelihood, as R's `glm(family = binomial("probit"))`. more:
        as of glm.

        >>> fit = ds.probit("sold ~ grade + condition", epsilon=1.0)
        """
        return self._named("probit", formula, where, more)

    def poisson(
        self, formula: str, where: str | None = None, **more: Any
    ) -> "RegressionResults | GroupRegressions | NoReply":
        """Poisson regression by maximum likelihood, as R's `glm(family = poisson)`, with standard
        errors that allow for any variance; of a 0/1 response, relative risks. more: as of glm.

        >>> fit = ds.poisson("bedrooms ~ grade + C(waterfront)", epsilon=1.0)
        """
        return self._named("poisson", formula, where, more)

    def gamma(
        self, formula: str, where: str | None = None, **more: Any
    ) -> "RegressionResults | GroupRegressions | NoReply":
        """Gamma regression with the link log by maximum likelihood, as R's `glm(family =
        Gamma("log"))`. more: as of glm.

        >>> fit = ds.gamma("price ~ sqft_living + grade", epsilon=1.0)
        """
        return self._named("gamma", formula, where, more)

    def coxph(
        self, formula: str, where: str | None = None, **more: Any
    ) -> "RegressionResults | GroupRegressions | NoReply":
        """Cox's proportional hazards by partial likelihood, as R's `coxph`. more: as of
        hazard_regression.

        >>> fit = ds.coxph("Surv(days, sold) ~ grade + C(waterfront)", epsilon=2.0)
        """
        return self._named("coxph", formula, where, more)

    def negbin(
        self, formula: str, where: str | None = None, *, dispersion: float, **more: Any
    ) -> "RegressionResults | GroupRegressions | NoReply":
        """Negative binomial regression by maximum likelihood at a given dispersion alpha, V = mu +
        alpha mu²: R's `glm(family = MASS::negative.binomial(1/alpha))`. more: as of glm;
        `ds.glm(..., "negative_binomial")` estimates alpha as well, and is robust.

        >>> fit = ds.negbin("bedrooms ~ grade", dispersion=0.5, epsilon=1.0)
        """
        return self._named("negbin", formula, where, {"dispersion": dispersion} | more)

    def _named(
        self, name: str, formula: str, where: str | None, more: Mapping[str, Any]
    ) -> "RegressionResults | GroupRegressions | NoReply":
        kind, fields = _names.fields_of(name, more)
        answer: RegressionResults | GroupRegressions | NoReply
        answer = getattr(self, kind)(formula, where=where, **fields)
        return answer

    def budgeted(
        self,
        epsilon: float | None = None,
        *,
        delta: float | None = None,
        ci_ratio: Widths | None = None,
        half_width: Widths | None = None,
        confirm: bool | None = None,
        dry_run: DryRun | None = None,
    ) -> "Dataset":
        """The same data set, with what a method spends that is given neither an epsilon nor a
        width; free. Each call is still charged, each time.

        For code that knows no epsilon, such as scripts in statsmodels' words
        (reticent.statsmodels.formula.api).

        >>> ds.budgeted(0.5).ols("price ~ grade").params["grade"]
        >>> ds.budgeted(ci_ratio=5, epsilon=1.0).mean("price")
        """
        usual = Spending(epsilon, delta, ci_ratio, half_width, confirm, dry_run)
        _ = usual.wanted
        return replace(self, _usual=usual)

    def published(self) -> list[Release]:
        """The releases that the curator has published to all who have a grant, the last published
        first; free. A study among them answers every linear analysis of its variables.

        >>> [(release.id, type(release).__name__) for release in ds.published()]
        """
        return read_all(self._http, f"/v1/datasets/{quote(self.name, safe='')}/published")

    def persons(self, features: Mapping[str, str] | None = None, /, **more: str) -> "Dataset":
        """The data set as a table with one row a person; free. Every method of it is then about
        persons.

        features, more: by name, what a column is made of: `count()`, or any, all, share, first,
        last, min, max, mean or sum of an expression of a person's rows, with `where=`, for first
        and last `by=`, and `none=` for persons without such a row. Those that the curator has
        declared are there too. Raises InvalidFormula, InvalidQuery.

        >>> patients = client.dataset("clinic").persons(visits="count()", bmi="last(bmi, by=day)")
        >>> patients.profile()
        >>> patients.mean("bmi", epsilon=0.5)
        """
        asked = checks.named(checks.TEXT).checked("persons", {**(features or {}), **more})
        path = f"/v1/datasets/{quote(self.name, safe='')}/persons"
        content = self._http.post(path, {"persons": asked})
        view = parsed(
            lambda found: Dataset.from_json(found, self._http, self._project, self._protocol),
            content,
        )
        return replace(view, _persons=asked)

    def twin(self, n: int | None = None, *, study: "Study | None" = None, seed: int = 0) -> "Twin":
        """A synthetic table from what is public, which answers every method of a data set in this
        process: free, and not for inference. For trying a program before a budget is spent on it.

        Columns follow the released profile, or are even between their bounds where there is none;
        they are independent but for those of a released `study`, which have its correlations (a
        Gaussian copula). n: rows, or persons with several rows each; None: the data set's (up to a
        million rows), so that noise is as large as it will be. Answers need the extra
        `reticent[server]` (MissingDependency); `to_frame()` needs pandas. Raises InvalidQuery for a
        view of persons (ask the twin for its own: `ds.twin().persons(...)`) and for linked tables.

        >>> rehearsal = ds.twin()
        >>> rehearsal.linear_regression("price ~ sqft_living + grade", epsilon=1.0).summary()
        >>> rehearsal.to_frame().describe()
        """
        from reticent._twin import make_twin  # noqa: PLC0415

        return make_twin(self, n, study, seed)

    def plan(
        self,
        kind: str | Callable[..., Any],
        *arguments: Any,
        epsilon: float | None = None,
        delta: float | None = None,
        ci_ratio: Widths | None = None,
        half_width: Widths | None = None,
        target: float | str | None = None,
        **fields: Any,
    ) -> Plan:
        """What a query would cost and bring; free. The arguments are those of the query's method.

        ci_ratio, half_width: instead of epsilon, how wide the intervals are to be, each number or
        by name; the plan is that at the least epsilon, and epsilon beside it the most. target: of a
        linear regression, the privacy standard error relative to the sampling standard error for
        which `epsilon_for` says what epsilon it takes; None: 1 and 0.5. A word is the field of that
        name, which of its targets a model answers: target="likelihood".

        >>> ds.plan("linear_regression", "price ~ sqft_living", epsilon=1.0)
        >>> ds.plan(ds.mean, "price", where="grade >= 8", epsilon=0.1).cost
        >>> ds.plan("mean", "price", ci_ratio=1.25).cost.epsilon
        """
        named = isinstance(target, str)
        query = self._query(kind, *arguments, **(fields | {"target": target} if named else fields))
        spending = Spending(epsilon, delta, ci_ratio, half_width)
        more = {}
        if target is not None and not named:
            more["target"] = finite(target, InvalidQuery("target must be a finite number."))
        return self._plan(query, spending, more)

    def _plan(
        self, query: Query, spending: Spending, more: Mapping[str, Any] | None = None
    ) -> Plan:
        wanted = spending.wanted
        body = self._body(query, spending.epsilon, spending.delta)
        body |= {} if wanted is None else {"wanted": wanted}
        with self._advice(query):
            content = self._http.post("/v1/plans", body | dict(more or {}))
        if not _queries.is_answer(content, body):
            raise another_answer(None)
        return parsed(Plan.from_json, content)

    def power(
        self,
        kind: str | Callable[..., Any],
        *arguments: Any,
        effect_size: float | None = None,
        epsilon: float | None = None,
        power: float | None = None,
        nobs: float | None = None,
        alpha: float = 0.05,
        delta: float | None = None,
        sd: float | None = None,
        term: str | None = None,
        events: float | None = None,
        **fields: Any,
    ) -> "Power":
        """What a test can see with its privacy noise: the one of effect_size, epsilon, power or
        nobs that is left out; free.

        kind, arguments, fields: of a `t_test`, `anova`, `correlation`, `log_rank` or
        `linear_regression`, as of its method. effect_size: Cohen's d (t_test) or f (anova), a
        correlation, a hazard ratio (log_rank, two groups of one size), a partial correlation of
        `term` (linear_regression), as in statsmodels.stats.power. nobs: the data set's number of
        records unless given; with all others given it is solved for. sd: the standard deviation
        within groups that you expect (t_test, anova). events: the share of records for whom you
        expect the event (log_rank). Raises InvalidQuery.

        >>> ds.power("t_test", "price", "waterfront", effect_size=0.2, sd=3.5e5, epsilon=0.5)
        >>> ds.power("linear_regression", "price ~ grade", effect_size=0.05, power=0.8).epsilon
        >>> log_rank = {"effect_size": 1.5, "events": 0.6, "epsilon": 1.0, "power": 0.8}
        >>> ds.power("log_rank", "days", "sold", "waterfront", **log_rank).nobs
        """
        from reticent import _power  # noqa: PLC0415 - SciPy is imported where it is used

        query = self._query(kind, *arguments, **fields)
        columns = {column.name: column for column in self.schema.columns}
        group = columns.get(str(query.get("group") or query.get("by")))
        levels = len(query.get("levels") or (group.levels if group else ()))

        def forecast(at: float) -> Plan:
            body = self._body(query, at, delta)
            with self._advice(query):
                return parsed(Plan.from_json, self._http.post("/v1/plans", body))

        design = _power.design_of(query, self.n, sd, term, levels, events)
        return _power.solved(
            design,
            forecast,
            effect_size=effect_size,
            epsilon=epsilon,
            nobs=nobs,
            power=power,
            alpha=alpha,
        )

    def test(
        self,
        formula: str,
        hypothesis: str | Sequence[str] | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        test: str = "wald",
        family: str | None = None,
        where: str | None = None,
        loss: str = "huber",
        tuning: float | None = None,
        dispersion: float | None = None,
        confidence_level: float = 0.95,
        idempotency_key: str | None = None,
        ci_ratio: Widths | None = None,
        half_width: Widths | None = None,
        confirm: bool | None = None,
        dry_run: DryRun | None = None,
    ) -> "TestResults | NoReply":
        """`hypothesis_test` by its usual name: linear hypotheses, such as "x1 = 0, x2 = x3", about
        a model that is fitted for it.

        test: "wald", "score" (Rao) or "lr". family None: the linear regression, with loss="squared"
        least squares (not for a score test). hypothesis None: a table of the model's terms.
        dispersion: as of `glm`. A Wald test of a fit that was released already is free: see
        `wald_test` of the fit.

        >>> ds.test("price ~ grade + condition", "condition = 0", test="score", epsilon=1.0)
        """
        values = {
            "formula": formula,
            "hypothesis": hypothesis,
            "test": test,
            "family": family,
            "where": where,
            "tuning": tuning,
            "dispersion": dispersion,
            "confidence_level": confidence_level,
            "loss": loss,
        }
        spending = Spending(epsilon, delta, ci_ratio, half_width, confirm, dry_run, idempotency_key)
        answer: TestResults | NoReply = self._ask("hypothesis_test", values, spending)
        return answer

    def residuals(
        self,
        fit: "Coefficients",
        bins: Sequence[float] | None = None,
        *,
        epsilon: float,
        delta: float | None = None,
        idempotency_key: str | None = None,
    ) -> "BinnedResiduals | NoReply":
        """Where a released fit is wrong: `binned_residuals` at its coefficients, with its link,
        scale and condition.

        fit: of `linear_regression` or `glm`. bins: edges of the fitted values; None: of their noisy
        quantiles.

        >>> fit = ds.linear_regression("price ~ sqft_living + grade", epsilon=1.0)
        >>> ds.residuals(fit, epsilon=0.5).plot()
        """
        from reticent.kinds.binned_residuals import question_of  # noqa: PLC0415

        values = question_of(fit, bins)
        spending = Spending(epsilon, delta, idempotency_key=idempotency_key)
        answer: BinnedResiduals | NoReply = self._ask("binned_residuals", values, spending)
        return answer

    def roc_of(
        self,
        fit: "Coefficients",
        outcome: str | None = None,
        thresholds: Sequence[float] = (),
        *,
        confidence_level: float = 0.95,
        epsilon: float,
        delta: float | None = None,
        idempotency_key: str | None = None,
    ) -> "RocCurve | NoReply":
        """How well a released fit tells an outcome apart: `roc` of its linear predictor, on the
        fit's condition. The area is the model's concordance (c) statistic.

        fit: of `linear_regression` or `glm`. outcome: None: the fit's response. thresholds: of the
        predictor, such as log(p/(1 − p)) for a logit's probability p.

        >>> logit = ds.logit("waterfront ~ grade + sqft_living", epsilon=1.0)
        >>> ds.roc_of(logit, epsilon=0.5).conf_int()
        """
        from reticent.kinds.roc import question_of  # noqa: PLC0415

        values = question_of(fit, outcome, thresholds) | {"confidence_level": confidence_level}
        spending = Spending(epsilon, delta, idempotency_key=idempotency_key)
        answer: RocCurve | NoReply = self._ask("roc", values, spending)
        return answer

    def ate(
        self,
        y: str,
        treatment: str,
        covariates: str | Sequence[str] | None = None,
        *,
        estimand: str = "ate",
        estimator: str = "aipw",
        propensity: "Coefficients | None" = None,
        outcome: "Coefficients | None" = None,
        trim: float = 0.05,
        where: str | None = None,
        confidence_level: float = 0.95,
        epsilon: float,
        delta: float | None = None,
        idempotency_key: str | None = None,
    ) -> "TreatmentEffectResults | NoReply":
        """The average effect of a treatment: `treatment_effect`, also at models that were released
        before, whose coefficients and errors it takes over.

        covariates: what is adjusted for, "age + C(g)" or ["age", "C(g)"]; left out: the terms of
        the released models. propensity: a released logit of the treatment on the covariates;
        outcome: a released regression of y on the treatment and the same covariates. Those that
        are not given are fitted within the question.

        >>> logit = ds.logit("waterfront ~ grade + sqft_living", epsilon=1.0)
        >>> found = ds.ate("price", "waterfront", propensity=logit, estimand="att", epsilon=1.0)
        >>> found.effect, found.conf_int()
        """
        from reticent.kinds.treatment_effect import models_of  # noqa: PLC0415

        if not isinstance(covariates, str | None):
            covariates = " + ".join(covariates)
        models = models_of(treatment, propensity, outcome, covariates)
        values = {
            "y": y,
            "treatment": treatment,
            "covariates": covariates,
            "estimand": estimand,
            "estimator": estimator,
            "trim": trim,
            "where": where,
            "confidence_level": confidence_level,
        } | models
        spending = Spending(epsilon, delta, idempotency_key=idempotency_key)
        answer: TreatmentEffectResults | NoReply = self._ask("treatment_effect", values, spending)
        return answer

    def att(
        self, y: str, treatment: str, covariates: str | Sequence[str] | None = None, **more: Any
    ) -> "TreatmentEffectResults | NoReply":
        """The average effect on the treated: `ate` with estimand="att".

        >>> ds.att("price", "waterfront", "grade + sqft_living", epsilon=1.0).effect
        """
        return self.ate(y, treatment, covariates, **(more | {"estimand": "att"}))

    def subsample_aggregate(
        self,
        model: str | Callable[..., Any] | Mapping[str, Any],
        *arguments: Any,
        epsilon: float | None = None,
        delta: float | None = None,
        blocks: int | None = None,
        parameter_bounds: Iterable[Sequence[float]] | None = None,
        bias_correction: bool = True,
        confidence_level: float = 0.95,
        idempotency_key: str | None = None,
        ci_ratio: Widths | None = None,
        confirm: bool | None = None,
        dry_run: DryRun | None = None,
        **fields: Any,
    ) -> "BlockResults | NoReply":
        """A model fitted without noise to secret random blocks of the records; its averaged
        estimates.

        model: "linear_regression", "glm" or "location_scale", with the arguments of that method (or
        a query as the server reads it). blocks: their number; None means planned. parameter_bounds:
        (lower, upper) for each estimate, from what is public; None means wide ones.
        bias_correction: of each block's estimate, where there is one.

        >>> fit = ds.subsample_aggregate("glm", "bedrooms ~ grade", "poisson", epsilon=2.0)
        >>> fit.params["grade"], fit.blocks
        """
        query = self._query(
            "subsample_aggregate",
            model,
            *arguments,
            blocks=blocks,
            parameter_bounds=parameter_bounds,
            bias_correction=bias_correction,
            confidence_level=confidence_level,
            **fields,
        )
        spending = Spending(epsilon, delta, ci_ratio, None, confirm, dry_run, idempotency_key)
        answer: BlockResults | NoReply = self._answer(query, spending)
        return answer

    def _ask(self, kind: str, values: Mapping[str, Any], spending: Spending) -> Any:
        return self._answer(self._query(kind, **values), spending)

    def _query(self, kind: str | Callable[..., Any], *arguments: Any, **fields: Any) -> Query:
        """The query of a method's arguments, about rows or about persons."""
        query = _queries.build(kind, *arguments, **fields)
        return query if self._persons is None else query | {"persons": dict(self._persons)}

    def _answer(self, query: Query, spending: Spending) -> Any:
        spending = spending.or_else(self._usual)
        epsilon = spending.epsilon
        if spending.needs_plan:
            epsilon = spending.settled(self._plan(query, spending))
        body = self._body(query, epsilon, spending.delta)
        key = uuid4().hex if spending.idempotency_key is None else spending.idempotency_key
        with self._advice(query):
            document = self._http.release(body, key)
        if not _queries.is_answer(document, body):
            raise another_answer(key)
        return read(document)

    def ask(
        self,
        kind: str | Callable[..., Any],
        *arguments: Any,
        epsilon: float | None = None,
        delta: float | None = None,
        idempotency_key: str | None = None,
        ci_ratio: Widths | None = None,
        half_width: Widths | None = None,
        confirm: bool | None = None,
        dry_run: DryRun | None = None,
        **fields: Any,
    ) -> Any:
        """The answer to a query by its kind's name, for programs that choose the kind. Arguments as
        in `plan`.

        >>> ds.ask("mean", "price", epsilon=0.5).value
        """
        spending = Spending(epsilon, delta, ci_ratio, half_width, confirm, dry_run, idempotency_key)
        return self._answer(self._query(kind, *arguments, **fields), spending)

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
        query = self._query(kind, *arguments, **fields)
        key = uuid4().hex if idempotency_key is None else idempotency_key
        body = self._body(query, epsilon, delta)
        with self._advice(query):
            document = self._http.submit(body, key)
        if not _queries.is_answer(document, body):
            raise another_answer(key)
        return read(document)

    def _under(self, protocol: str | None) -> "Dataset":
        """The data set, with requests that name the protocol of a digest; None: as it is."""
        return self if protocol is None else replace(self, _protocol=protocol)

    def _body(self, query: Query, epsilon: float | None, delta: float | None) -> dict[str, Any]:
        return _queries.body(self.name, query, epsilon, delta, self._project, self._protocol)

    def _advice(self, query: Query) -> AbstractContextManager[None]:
        return _advice.on_columns(query, [column.name for column in self.schema])

    if not TYPE_CHECKING:  # it would hide misspelt names from type checkers

        def __getattr__(self, name: str) -> NoReturn:
            """What is not served under a name that people look for says what to ask instead."""
            if name in _names.NOT_SERVED:
                asked = _names.NOT_SERVED[name]
                raise AttributeError(f"there is no {name} of a data set; ask {asked}")
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self
            )

    def __repr__(self) -> str:
        columns = ", ".join(column.name for column in self.schema)
        of_persons = self._persons is not None or self.schema.many_rows
        what = "persons" if of_persons else "records"
        return f"<Dataset {self.name}, version {self.version}: {self.n:,} {what}; {columns}>"


for _name, _method in {**vars(Methods), **vars(Dataset)}.items():
    if isfunction(_method) and not _name.startswith("_"):
        setattr(Dataset, _name, in_words(_method))
