# SPDX-License-Identifier: Apache-2.0
"""Conversion of ρ into (ε, δ) for releases of sums with Gaussian noise and of selections: less is
lost than by zCDP's.

A release whose parts are sums with discrete Gaussian noise, and selections from public lists, costs
ρ_G by mechanisms.gaussian_cost, and is (ε, δ)-DP for every

    δ ≥ H(μ, ε − SLACK),   μ = √(2ρ_G),
    H(μ, ε) = Φ(−x₁) − e^ε Φ(−x₂),   x₁ = ε/μ − μ/2,   x₂ = x₁ + μ

(Balle & Wang 2018, Theorem 8; Dong, Roth & Su 2022, Corollary 2.13). zCDP's conversion
(accounting.conversions) knows the Rényi divergences alone and allows 13 % less ρ at (1, 10⁻⁶).

*Proof*, adaptive. Fix neighbours D, D′. In step i, given all that was released before, entry e of
the released integers is S_e + N_Z(0, σ_e²), with S_e an integer. For any t_e with σ_e² ≥ 4t_e² ≥
7/2 let R be the mechanism that draws Y_e = S_e + N(0, σ_e² − t_e²) and then rounds Y_e to an
integer z with probability exp(−(z − Y_e)²/2t_e²)/θ(Y_e), θ(y) = Σ_k exp(−(k − y)²/2t_e²).

1. *R is the release up to a factor.* By Poisson's formula θ(y) = t√(2π)(1 + h(y)), h(y) = 2Σ_{k≥1}
   exp(−2π²t²k²) cos(2πky). So R gives z with probability N(z; S, σ²)·E[1/(1 + h(Y))], Y given z
   being Gaussian of variance w = t²(1 − t²/σ²) ≥ ¾t², so that |E cos(2πkY)| ≤ exp(−2π²k²w). With
   |h| ≤ η = h(0) and 1/(1 + h) = 1 − h + h²/(1 + h), the expectation is 1 up to 2Σ_k exp(−2π²k²(t²
   + w)) + η²/(1 − η). N_Z gives z with probability N(z; S, σ²)/(1 + η′), 0 ≤ η′ ≤ 2Σ_k
   exp(−8π²t²k²). The logarithm of their quotient is at most κ(t) = 2.1 exp(−3.5π²t²) + 4.1
   exp(−4π²t²). Over all entries of all steps, every output has the same probability up to e^{±K}, K
   = Σ_e κ(t_e), on D and on D′.
2. *R is μ-GDP.* R is a function of the Y and of coins that know nothing else of the table. Let v_i
   be what D and D′ change of step i's sums, each entry divided by its √(σ_e² − t_e²); it is a
   function of what was released before. mechanisms.gaussian_cost shows ½Σ_i|v_i|² ≤ ρ_G on every
   path. Add a last step with one entry that changes by what is missing, so that Σ|v_i|² = μ²;
   leaving its result out is post-processing. Under D′ the log-likelihood ratio of all Y is M −
   μ²/2, M = Σ v_i·Z_i with Z_i standard normal given the past. For every θ, E exp(iθM +
   θ²Σ|v_i|²/2) = 1 (the last factor has conditional expectation 1, then the one before it, …), and
   Σ|v_i|² = μ² is a constant, so E exp(iθM) = exp(−θ²μ²/2): M is N(0, μ²). So the ratio has the law
   that it has for N(μ, 1) against N(0, 1), and P_R(E) ≤ e^ε P′_R(E) + H(μ, ε) for every event E and
   every ε.
3. *Together.* P(E) ≤ e^K P_R(E) ≤ e^{K + ε′} P′_R(E) + e^K H(μ, ε′)
   ≤ e^{2K + ε′} P′(E) + e^K H(μ, ε′). With 2K ≤ SLACK, ε′ = ε − SLACK: (ε, e^{SLACK} H(μ, ε′))-DP.

4. *Selections.* Let a step be a selection that, given the past, is a mechanism of bounded range.
   By accounting.gaussian_account (2) it is μ_i-GDP on D and D′, so it has the law of a function of
   one Y_i, N(μ_i, 1) on D and N(0, 1) on D′, and of coins. μ_i is a function of the past, like v_i.
   R draws it so: with μ_i² in the place of |v_i|², 2 holds word by word. It is released exactly as
   it is drawn, so it adds nothing to K, and 3 holds with the entries of the sums alone.

Where the rows are chosen by a secret key, 1 to 4 hold for each choice, with the choice that a
permutation of the rows makes of it on D′ (mechanisms.secret_rows), and averages over choices of the
same weights keep P ≤ e^ε P′ + δ.

*Evaluation.* With S(x) = Σ_{n≥0} x^{2n+1}/(2n + 1)!!, Φ(x) = ½ + φ(x)S(x), and e^ε φ(x₂) = φ(x₁):

    H = φ(x₁)S(x₂) − φ(x₁)S(x₁) − (e^ε − 1)/2,

three numbers of which the first is the largest (x₂ ≥ |x₁|). In decimal arithmetic of P digits an
operation, exp and sqrt among them, is off by at most 10^{1−P} relative. S has terms of one sign, at
most 10⁴ and each made of at most 2·10⁴ operations; x₁ and x₂ are off by at most 5·10^{1−P}x₂, and
with x₂ ≤ 60 (x d ln S/dx ≤ 1 + x², d ln φ/dx = −x) that is at most 4·10⁴·10^{1−P} of the first
number, in all three. What is left out of the series is below 10^{−P} of it. So H is off by less
than 10^{12−P} times the first number and (e^ε − 1)/2, which is added. P is such that this is below
10⁻²⁰ δ.

Any ρ that passes is valid, so how it was found needs no proof: H increases with μ (its derivative
is φ(x₁)).
"""

from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil, erfc, exp, floor, sqrt

from reticent_server.accounting import conversions
from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, RHO_UNITS

SLACK_UNITS = 6
"""SLACK, in EPSILON_UNITS: 2K for 2¹⁴ entries with t² = 7/8 (5.3·10⁻⁹) and 2⁶⁰ with t² = 4 (10⁻⁴¹);
mechanisms.gaussian_cost.
"""

_LN_10 = 2.302585092994046
_GUARD = 40  # digits beyond those of e^ε/δ: 12 for rounding, 20 for how close, 8 to spare
_OFF = 12  # digits that rounding may cost
_FARTHEST = 60  # x₁ or x₂ beyond which nothing is certified; δ = 10⁻³⁰⁰ has 37, and ε = 100 adds 14
_LEAST_DIGITS = 300  # of 1/δ, for which delta_bound is close
_NEWTON_STEPS = 60
_CLOSE = 1e-10  # relative: a smaller step of ρ is not worth another evaluation
_SHORT = 1 - 1e-11  # of a step towards the target, so that rounding does not go beyond it
_HALVINGS = 40


def delta_bound(rho: float, epsilon: float) -> Decimal:
    """An upper bound of H(√(2ρ), ε), within 10⁻²⁰ of it relative where H ≥ 10⁻³⁰⁰; 1 where nothing
    is certified.

    rho, epsilon: positive, not in units.
    """
    return _evaluated(Decimal(rho), Decimal(epsilon), _LEAST_DIGITS)[0]


@lru_cache(maxsize=4096)
def max_rho(epsilon_units: int, delta_units: int) -> int:
    """The largest ρ_G (RHO_UNITS, up to 10⁻⁹ relative) that is certified to give (ε, δ)-DP; 0 where
    none is found.

    epsilon_units in EPSILON_UNITS, delta_units in DELTA_UNITS; δ must be below 1.
    """
    left = epsilon_units - SLACK_UNITS
    start = conversions.max_rho(left, delta_units) if left > 0 else 0
    if start <= 0:
        return 0
    epsilon, delta = Decimal(left) / EPSILON_UNITS, Decimal(delta_units) / DELTA_UNITS
    target = delta * (1 - Decimal(SLACK_UNITS) / EPSILON_UNITS)  # e^{−SLACK} is more than this
    return largest(epsilon, target, start)


def rho_units(epsilon: float, delta: float) -> int:
    """max_rho for decimal amounts: a request's (ε, δ), each rounded down to its unit."""
    return max_rho(
        floor(Fraction(repr(epsilon)) * EPSILON_UNITS), floor(Fraction(repr(delta)) * DELTA_UNITS)
    )


def largest(epsilon: Decimal, target: Decimal, start: int) -> int:
    """A ρ (RHO_UNITS) with H(√(2ρ), ε) ≤ target, the last that passes of Newton's iterates of ln H
    in μ, from `start`; 0 where none passes.
    """
    best, rho, digits = 0, start, _digits(target)
    for _ in range(_NEWTON_STEPS):
        bound, slope = _evaluated(Decimal(rho) / RHO_UNITS, epsilon, digits)
        if bound > target:
            break
        before, best = best, rho
        if best <= before * (1 + _CLOSE):
            break
        step = float((target / bound).ln() * bound / slope) * _SHORT
        rho = floor((sqrt(2 * best / RHO_UNITS) + step) ** 2 / 2 * RHO_UNITS)
    return best


def epsilon_of(rho_amount: int, delta: float) -> float:
    """The ε at which ρ_G (rho_amount in RHO_UNITS) gives (ε, δ)-DP; for display, in floats."""
    if rho_amount <= 0:
        return 0.0
    mu = sqrt(2 * rho_amount / RHO_UNITS)
    low, high = 0.0, conversions.epsilon_of(rho_amount, delta)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if _shown_delta(mu, middle) <= delta else (middle, high)
    return high + SLACK_UNITS / EPSILON_UNITS


def _shown_delta(mu: float, epsilon: float) -> float:
    """H(μ, ε), to some digits."""
    first = (epsilon / mu - mu / 2) / sqrt(2)
    return (erfc(first) - exp(epsilon) * erfc(first + mu / sqrt(2))) / 2


def _digits(delta: Decimal) -> int:
    return max(1, 1 - delta.adjusted())


def _evaluated(rho: Decimal, epsilon: Decimal, digits: int) -> tuple[Decimal, Decimal]:
    """An upper bound of H, and about its derivative in μ. digits: of 1/δ for the smallest δ that
    matters.
    """
    c = Context(prec=_GUARD + digits + ceil(float(epsilon) / _LN_10))
    mu = c.sqrt(c.multiply(2, rho))
    first = c.subtract(c.divide(epsilon, mu), c.divide(mu, 2))
    second = c.add(first, mu)
    if second > _FARTHEST:
        return Decimal(1), Decimal(1)
    exponent = c.divide(c.multiply(first, first), -2)
    density = c.divide(c.exp(exponent), c.sqrt(c.multiply(2, _pi(c.prec))))
    far, near = (c.multiply(density, _series(x, c)) for x in (second, first))
    grown = c.divide(c.subtract(c.exp(epsilon), 1), 2)
    off = c.scaleb(c.add(far, grown), _OFF - c.prec)
    return c.add(c.subtract(c.subtract(far, near), grown), off), density


def _series(x: Decimal, c: Context) -> Decimal:
    """S(x), |x| ≤ 60, up to 10^{−P} relative for what is left out: terms fall by half or more from
    2n + 1 = 2x² on.
    """
    square = c.multiply(x, x)
    total = term = x
    n = 1
    while n < 2 * square or abs(term) > c.scaleb(abs(total), -c.prec - 1):
        n += 2
        term = c.divide(c.multiply(term, square), n)
        total = c.add(total, term)
        if not term:
            break
    return total


@lru_cache(maxsize=64)
def _pi(digits: int) -> Decimal:
    """π to `digits` digits, by Machin's formula in whole numbers of 10^{−digits−10}."""
    unit = 10 ** (digits + 10)
    return Decimal(4 * (4 * _arctan(5, unit) - _arctan(239, unit))).scaleb(
        -digits - 10, Context(prec=digits + 12)
    )


def _arctan(k: int, unit: int) -> int:
    """arctan(1/k) in units, off by at most one a term."""
    total = power = unit // k
    n, sign = 1, 1
    while power:
        power //= k * k
        n, sign = n + 2, -sign
        total += sign * (power // n)
    return total
