"""The methods of a data set for tables, sums, quantiles and robust statistics."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from reticent import _queries
from reticent import _queries_robust as queries
from reticent._release import NoReply, Release
from reticent.kinds.crosstab import Crosstab
from reticent.kinds.depth_median import DepthMedian
from reticent.kinds.histogram import Histogram
from reticent.kinds.quantiles import Quantiles
from reticent.kinds.subsample_aggregate import BlockResults
from reticent.results.estimate import Estimate
from reticent.results.statistic import Statistic

Answer = TypeVar("Answer", bound=Release)


class Statistics:
    """What Dataset inherits; every method is charged when it is called, each time."""

    __slots__ = ()

    def _release(
        self,
        expected: type[Answer],
        query: dict[str, Any],
        epsilon: float,
        delta: float | None,
        idempotency_key: str | None,
    ) -> Answer | NoReply:
        raise NotImplementedError

    def sum(
        self,
        column: str,
        where: str | None = None,
        *,
        epsilon: float,
        delta: float | None = None,
        idempotency_key: str | None = None,
    ) -> Estimate | NoReply:
        """Sum of a column in this table; its interval counts the privacy noise alone.

        >>> ds.sum("bedrooms", where='waterfront == "1"', epsilon=0.5)
        """
        query = queries.sum(column, where)
        return self._release(Estimate, query, epsilon, delta, idempotency_key)

    def histogram(
        self,
        column: str,
        bins: Iterable[float] | None = None,
        where: str | None = None,
        *,
        epsilon: float,
        delta: float | None = None,
        idempotency_key: str | None = None,
    ) -> Histogram | NoReply:
        """Counts by bin of public edges; without bins by level, or by whole number.

        >>> ds.histogram("price", [0, 2e5, 5e5, 1e6, 1e7], epsilon=0.1)
        """
        query = queries.histogram(column, bins, where)
        return self._release(Histogram, query, epsilon, delta, idempotency_key)

    def crosstab(
        self,
        columns: Iterable[str],
        where: str | None = None,
        *,
        epsilon: float,
        delta: float | None = None,
        idempotency_key: str | None = None,
    ) -> Crosstab | NoReply:
        """Counts by the values of two or more columns; of two also a test of independence.

        >>> ds.crosstab(["grade", "waterfront"], epsilon=0.2).independence
        """
        query = queries.crosstab(columns, where)
        return self._release(Crosstab, query, epsilon, delta, idempotency_key)

    def quantiles(
        self,
        column: str,
        probabilities: Iterable[float] = (0.25, 0.5, 0.75),
        where: str | None = None,
        *,
        epsilon: float,
        delta: float | None = None,
        idempotency_key: str | None = None,
    ) -> Quantiles | NoReply:
        """Quantiles at any probabilities; larger probabilities never have smaller values.

        >>> ds.quantiles("price", [0.1, 0.5, 0.9], where="grade >= 8", epsilon=1.0)
        """
        query = queries.quantiles(column, probabilities, where)
        return self._release(Quantiles, query, epsilon, delta, idempotency_key)

    def median(
        self,
        column: str,
        mechanism: str = "exponential",
        where: str | None = None,
        *,
        epsilon: float,
        delta: float | None = None,
        idempotency_key: str | None = None,
    ) -> Statistic | NoReply:
        """Median by "exponential" (the only one with where), "smooth_sensitivity" or "ptr".

        >>> ds.median("price", where="grade >= 8", epsilon=0.5)
        >>> ds.median("price", "smooth_sensitivity", epsilon=0.5)
        """
        query = queries.median(column, mechanism, where)
        return self._release(Statistic, query, epsilon, delta, idempotency_key)

    def iqr(
        self,
        column: str,
        mechanism: str = "quantiles",
        where: str | None = None,
        *,
        epsilon: float,
        delta: float | None = None,
        idempotency_key: str | None = None,
    ) -> Statistic | NoReply:
        """Interquartile range by "quantiles" (the only one with where), or "ptr", which may not reply.

        >>> ds.iqr("price", where="grade >= 8", epsilon=1.0).quartiles
        >>> ds.iqr("price", "ptr", epsilon=2.0)
        """
        query = queries.iqr(column, mechanism, where)
        return self._release(Statistic, query, epsilon, delta, idempotency_key)

    def m_estimate(
        self,
        column: str,
        tuning: float | None = None,
        base: str = "uniform",
        lower: float | None = None,
        upper: float | None = None,
        *,
        epsilon: float,
        delta: float | None = None,
        idempotency_key: str | None = None,
    ) -> Statistic | NoReply:
        """Huber's location by the exponential mechanism. tuning: c, in the units of the column.

        base: "uniform" on [lower, upper], or "cauchy" with these quartiles; from the declared bounds or
        the profile where they are left out.

        >>> ds.m_estimate("price", tuning=1e5, lower=0, upper=2e6, epsilon=1.0)
        """
        query = queries.m_estimate(column, tuning, base, lower, upper)
        return self._release(Statistic, query, epsilon, delta, idempotency_key)

    def depth_median(
        self,
        columns: Iterable[str],
        scale: str = "trimmed",
        eta: float | str | None = None,
        directions: int | None = None,
        *,
        epsilon: float,
        delta: float | None = None,
        idempotency_key: str | None = None,
    ) -> DepthMedian | NoReply:
        """Projection-depth median of up to 8 columns; No Reply is possible.

        scale: "iqr", "mad" (withstands up to half of bad records) or "trimmed" (the least noise).
        eta: planned where it is None, chosen privately where it is "private".

        >>> ds.depth_median(["price", "sqft_living"], "trimmed", epsilon=1.0)
        """
        query = queries.depth_median(columns, scale, eta, directions)
        return self._release(DepthMedian, query, epsilon, delta, idempotency_key)

    def subsample_aggregate(
        self,
        model: str | Callable[..., Any] | Mapping[str, Any],
        *arguments: Any,
        epsilon: float,
        delta: float | None = None,
        blocks: int | None = None,
        parameter_bounds: Iterable[Sequence[float]] | None = None,
        bias_correction: bool = True,
        idempotency_key: str | None = None,
        **fields: Any,
    ) -> BlockResults | NoReply:
        """A model fitted without noise to secret random blocks of the records; its averaged estimates.

        model: "linear_regression", "glm" or "location_scale", with the arguments of that method (or
        a query as the server reads it). blocks: their number; None means planned. parameter_bounds: (lower, upper) for each estimate, from what
        is public; None means wide ones. bias_correction: of each block's estimate, where there is one.

        >>> fit = ds.subsample_aggregate("glm", "bedrooms ~ grade", "poisson", epsilon=2.0)
        >>> fit.params["grade"], fit.blocks
        """
        query = _queries.subsample_aggregate(
            model,
            *arguments,
            blocks=blocks,
            parameter_bounds=parameter_bounds,
            bias_correction=bias_correction,
            **fields,
        )
        return self._release(BlockResults, query, epsilon, delta, idempotency_key)
