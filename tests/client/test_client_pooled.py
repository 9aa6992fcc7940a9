# SPDX-License-Identifier: Apache-2.0
"""Pooled studies: against least squares on the pooled records, with noise whose law is known; and
against real servers.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm
from statsmodels.stats.meta_analysis import combine_effects

import reticent
from reticent import InvalidQuery, NotEstimable
from reticent._pooled.meta import meta
from reticent._pooled.protocol import protocol
from reticent._pooled.study import load_pooled, pool
from reticent_server.kinds.study.kind import Study as Question
from support.client.studies import result_of
from support.kinds.studies import read
from support.seeds import seeded

NAMES = ("y", "x", "w")
SIZES = {"a": 4000, "b": 900, "c": 2500}


def site(seed: int, n: int, shift: float = 0.0) -> Any:
    """(n, 3): another mean of x and another intercept at each site."""
    rng = seeded(seed)
    x, w, e = rng.normal(size=(3, n))
    x = x * (1 + shift / 4) + shift
    return np.column_stack([1 + shift + 0.5 * x - 0.3 * w + e, x, w])


def study(table: Any, sd: float = 0.0, seed: int = 0, names: Any = NAMES) -> Any:
    return read(Question(names), result_of(table, sd, seed, names))


@pytest.fixture(scope="module")
def tables() -> Any:
    return {name: site(k, n, k / 2) for k, (name, n) in enumerate(SIZES.items())}


@pytest.fixture(scope="module")
def pooled(tables: Any) -> Any:
    return pool({name: study(table) for name, table in tables.items()})


def dummies() -> Any:
    return np.column_stack(
        [np.repeat([name == one for name in SIZES], list(SIZES.values())) for one in ("b", "c")]
    ).astype(float)


def test_pooled_least_squares_is_that_of_the_pooled_records(pooled: Any, tables: Any) -> None:
    rows = np.vstack(list(tables.values()))
    exact = sm.OLS(rows[:, 0], sm.add_constant(rows[:, 1:])).fit()
    fit = pooled.ols("y ~ x + w")
    np.testing.assert_allclose(fit.params, exact.params, rtol=1e-6)
    np.testing.assert_allclose(fit.bse, exact.bse, rtol=2e-3)
    np.testing.assert_allclose(pooled.corr().values, np.corrcoef(rows.T), rtol=1e-6)
    assert pooled.nobs == len(rows)
    assert "4,000" in str(pooled.summary())


def test_sites_have_effects_and_slopes_of_their_own(pooled: Any, tables: Any) -> None:
    rows, D = np.vstack(list(tables.values())), dummies()
    X = sm.add_constant(np.column_stack([rows[:, 1:], D]))
    exact = sm.OLS(rows[:, 0], X).fit()
    fit = pooled.ols("y ~ x + w + site")
    assert fit.names == ("Intercept", "x", "w", "site[b]", "site[c]")
    np.testing.assert_allclose(fit.params, exact.params, rtol=1e-6)
    np.testing.assert_allclose(fit.bse, exact.bse, rtol=2e-3)
    crossed = np.column_stack([X[:, :2], D, D * rows[:, 1:2]])
    slopes = pooled.ols("y ~ x * site")
    by_name = dict(zip(slopes.names, slopes.params, strict=True))
    theirs = sm.OLS(rows[:, 0], crossed).fit().params
    ours = [by_name[n] for n in ("Intercept", "x", "site[b]", "site[c]", "site[b]:x", "site[c]:x")]
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


@pytest.mark.slow
def test_errors_count_the_noise_of_every_site(tables: Any) -> None:
    """Over 300 draws of the noise, estimates spread as the errors say: within 5 errors of an sd."""
    draws, sds = 300, {"a": 0.004, "b": 0.02, "c": 0.006}
    found, said = [], []
    for k in range(draws):
        one = pool({s: study(t, sds[s], 7919 * k + i) for i, (s, t) in enumerate(tables.items())})
        fit = one.ols("y ~ x + w")
        found.append(np.asarray(fit.params))
        said.append(np.asarray(fit.privacy_bse))
    ratio = np.std(found, axis=0) / np.mean(said, axis=0)
    assert np.all(np.abs(ratio - 1) < 5 / np.sqrt(2 * draws)), ratio


def test_precision_counts_a_noisy_site_less(tables: Any) -> None:
    parts = {s: study(t, 0.015 if s == "b" else 0.001) for s, t in tables.items()}
    people, precise = pool(parts), pool(parts, weights="precision")
    assert precise.weights["b"] < 0.9 * people.weights["b"]
    assert precise.ols("y ~ x + w + site").bse["x"] < people.ols("y ~ x + w + site").bse["x"]


DIFFERENT: Any = {
    "where": {"query": {"where": "x > 0"}},
    "missing": {"query": {"missing": "mean"}},
    "weights": {"query": {"weights": "w"}},
    "x": {"result": {"variables": {"y": ["y"], "x": ["w"], "w": ["w"]}}},
}
FORGED: Any = {
    "no Gram matrix": (
        {"moments": [[1, 0, 0, 0], [0, 1, 3, 0], [0, 3, 1, 0], [0, 0, 0, 1]]},
        "negative",
    ),
    "n as text": ({"n": "4000"}, "number of records is none"),
    "n as a fraction": ({"n": 4000.5}, "number of records is none"),
    "n that is huge": ({"n": 10**400}, "number of records is none"),
}


def changed(one: Any, **parts: Any) -> Any:
    document = json.loads(json.dumps(dict(one.release)))
    for part, members in parts.items():
        document[part] |= members
    return type(one)(document)


@pytest.mark.parametrize("what", DIFFERENT)
def test_studies_of_other_records_or_columns_have_no_sum(tables: Any, what: str) -> None:
    one, other = study(tables["a"]), study(tables["b"])
    with pytest.raises(InvalidQuery, match=rf"a and b differ in {what}:"):
        pool({"a": one, "b": changed(other, **DIFFERENT[what])})
    assert pool({"a": one, "b": changed(other, query={"missing": "mask"})})


@pytest.mark.parametrize("what", FORGED)
def test_numbers_of_no_table_are_refused(tables: Any, what: str) -> None:
    members, said = FORGED[what]
    with pytest.raises(reticent.UnexpectedReply, match=rf"b: .*{said}"):
        pool({"a": study(tables["a"]), "b": changed(study(tables["b"]), result=members)})


def test_noise_makes_no_study_a_forgery(tables: Any) -> None:
    """With noise as large as the moments, eigenvalues below 0 are usual; all studies are added."""
    parts = [study(tables["b"], 0.5, seed) for seed in range(50)]
    lowest = [np.linalg.eigvalsh(np.array(part.result["moments"]))[0] for part in parts]
    assert min(lowest) < 0
    for part in parts[1:]:
        pool({"a": parts[0], "b": part})


DEEP = "[" * 100_000
TEXTS = (DEEP, '{"format": ' + DEEP, "1" * 5000, '{"a": 1, "a": 2}', "\ud800".join("{}"), "")


@pytest.mark.parametrize("text", TEXTS)
def test_a_file_that_cannot_be_read_is_a_sentence(tmp_path: Path, text: str) -> None:
    file = tmp_path / "f.json"
    file.write_text(text, "utf-8", "surrogatepass")
    for read_file in (load_pooled, protocol, reticent.bundle):
        with pytest.raises(InvalidQuery, match=r"f\.json cannot be read as"):
            read_file(file)
    with pytest.raises(reticent.UnexpectedReply, match="holds no release"):
        reticent.load(file)


def test_a_column_that_a_site_lacks_is_named_and_left_out(tables: Any) -> None:
    short = study(tables["b"][:, :2], names=NAMES[:2])
    one = pool({"a": study(tables["a"]), "b": short, "c": study(tables["c"])})
    assert one.names == ("y", "x")
    assert "w is not at b" in str(one.summary())
    with pytest.raises(reticent.InvalidFormula, match="w is not in this study"):
        one.ols("y ~ w")
    assert one.of("a", "c").ols("y ~ w").names == ("Intercept", "w")


def test_heterogeneity_is_of_the_sites_own_fits(pooled: Any) -> None:
    found = pooled.heterogeneity("y ~ x + w")
    assert found["Intercept"].I2 > 0.9
    assert found["x"].pvalue_Q > 1e-6
    assert found["x"].sites == tuple(SIZES)


def test_made_up_numbers_stand_out_where_noise_does_not_hide_them() -> None:
    """A site that reports a slope of 1.5 in place of 0.5 is seen; by one of 0.505 it is not."""
    honest = {name: study(site(k, 3000), 0.002, k) for k, name in enumerate("abcd")}
    rows = site(9, 3000)
    for slope, seen in ((1.0, True), (0.005, False)):
        made_up = rows + np.outer(slope * rows[:, 1], [1, 0, 0])
        pooled = pool(honest | {"e": study(made_up, 0.002, 9)})
        found = pooled.heterogeneity("y ~ x + w")["x"]
        assert (found.pvalue_Q < 1e-6) is seen
        assert (found.I2 > 0.9) is seen
    assert pooled.of(*"abcd").heterogeneity("y ~ x + w")["x"].pvalue_Q > 1e-6


def test_a_pool_is_saved_and_read(pooled: Any, tmp_path: Any) -> None:
    pooled.save(tmp_path / "pool.json")
    again = load_pooled(tmp_path / "pool.json")
    np.testing.assert_array_equal(again.ols("y ~ x").params, pooled.ols("y ~ x").params)


@pytest.mark.parametrize(("method", "theirs"), [("DL", "dl"), ("PM", "pm")])
def test_meta_analysis_is_statsmodels(method: str, theirs: str) -> None:
    y, s = np.array([0.1, 0.9, 0.4, 1.3]), np.array([0.2, 0.3, 0.1, 0.25])
    exact = combine_effects(y, s**2, method_re=theirs, use_t=True)
    ours = meta({str(k): (a, b) for k, (a, b) in enumerate(zip(y, s, strict=True))}, method=method)
    assert ours.tau2 == pytest.approx(exact.tau2, rel=1e-4)
    assert pytest.approx(exact.q) == ours.Q
    assert ours.estimate == pytest.approx(exact.mean_effect_re, rel=1e-4)
    assert ours.se == pytest.approx(max(exact.sd_eff_w_re_hksj, exact.sd_eff_w_re), rel=1e-4)
    assert exact.i2 == pytest.approx(ours.I2)


def test_reml_is_the_maximum_and_equal_variances_have_a_closed_form() -> None:
    """With equal variances v, REML's τ² is the sample variance less v."""
    y = np.array([0.1, 0.9, 0.4, 1.3, 2.0])
    found = meta({str(k): (value, 0.3) for k, value in enumerate(y)})
    assert found.tau2 == pytest.approx(np.var(y, ddof=1) - 0.09, rel=1e-5)
    assert meta({"a": (1.0, 0.5), "b": (1.1, 0.5)}).tau2 == 0.0


def test_one_release_is_not_two_sites(pooled: Any) -> None:
    with pytest.raises(InvalidQuery, match="count twice"):
        pool({"a": pooled["a"], "b": pooled["a"]})


def test_numbers_without_errors_are_refused() -> None:
    with pytest.raises(NotEstimable, match="b: its number has no interval"):
        meta({"a": (1.0, 0.5), "b": (1.0, float("nan"))})
    with pytest.raises(InvalidQuery, match="two sites"):
        meta({"a": (1.0, 0.5)})


def agreed(**changes: Any) -> dict[str, Any]:
    return {
        "protocol": 1,
        "study": {"variables": ["y", "x"]},
        "epsilon": 4.0,
        "columns": {
            "y": {"kind": "numeric", "bounds": [-10, 10]},
            "x": {"kind": "numeric", "bounds": [-5, 5]},
        },
        "sites": {"north": {}, "south": {}},
    } | changes


def test_the_digest_is_of_the_content_only() -> None:
    one = protocol(agreed())
    turned = dict(reversed(list(agreed().items()))) | {"signatures": [{"by": "north"}]}
    assert protocol(turned).digest == one.digest
    assert protocol(agreed(epsilon=2.0)).digest != one.digest


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sites": {"north": {}}}, "two or more"),
        ({"study": {"variables": ["y"], "missing": "indicator"}}, "missing"),
        ({"study": {"variables": ["y", "lump(g, 3)"]}}, "released"),
        ({"study": {"variables": ["y", "z"]}}, "nothing of z"),
        ({"epsilon": None}, "positive"),
        ({"epsilon": 10**400}, "positive"),
        (
            {
                "study": {"variables": ["y", "poly(x, 2)"]},
                "sites": {"north": {}, "south": {"bounds": {"x": [0, 1]}}},
            },
            "made of the bounds",
        ),
    ],
)
def test_what_cannot_be_a_protocol_says_why(changes: Any, said: str) -> None:
    with pytest.raises(InvalidQuery, match=said):
        protocol(agreed(**changes))
