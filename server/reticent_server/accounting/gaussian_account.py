# SPDX-License-Identifier: Apache-2.0
"""Accounts that are kept as Gaussian differential privacy as a whole: the rule gdp.

Under this rule answer i is charged (ρ_i, δ_i), and is given iff Σρ_i ≤ ρ* and Σδ_i ≤ δ″ with it
included. With δ′ = δ − δ″, ρ* is the largest with

    e^s H(√(2ρ*), ε − s) ≤ δ′,    s ≥ SLACK · ρ*,    H of accounting.gaussian,

which is 12 to 17 % more than under zcdp at δ = 10⁻⁶. The interaction is (ε, δ)-DP, for questions,
amounts and stopping that depend on answers.

A mechanism is μ-GDP where, for neighbours either way round, no test of one table against the other
does better than the best test of N(μ, 1) against N(0, 1) (Dong, Roth & Su 2022). It is then what a
function that knows both tables makes of a draw from one of these two laws, and of coins (Blackwell;
there, Theorem 2.10).

*What an answer is charged.* ρ_i = ½μ_i² and more, such that on each of two neighbours its law is (1
− δ_i)P′ + δ_iP″, P′ within e^{±K_i} of a μ_i-GDP law at every output, and 2K_i ≤ SLACK · ρ_i.

1. *Gaussian noise alone.* accounting.gaussian: discrete noise is within e^{±K} of a function of
   continuous noise, at cost ρ_G. A step with changes v of its sums, in units of the noise, is
   |v|-GDP. An entry of counts has 2κ < 3.24·10⁻¹³, so COUNT_FEE units more are charged for each;
   2⁶⁰ others have 10⁻⁴¹ together, less than a unit's worth.
2. *A bounded range.* Let the log-likelihood ratio of two neighbours stay within an interval of
   length R, wherever it lies. (A pure ε has R = 2ε; an exponential mechanism that is ε-DP has R =
   ε: Dong, Durfee & Rogers 2020.) Then the mechanism is μ-GDP with μ = R√(2π)/4, so that ½μ² =
   (π/2) R²/8: π/2 times what zCDP charges, ½ε² and ε²/8. *Proof.* Let the ratio L be in [t − R, t].
   Under P′ its e^L has mean 1 and values in [e^{t−R}, e^t]; the law on the two ends with mean 1
   spreads it, and every convex function has a larger mean there. So no test does better than the
   best on two outcomes with log-ratios t and t − R: with q and p the probabilities of the first
   under P′ and P, logit p − logit q = R. Its trade-off of errors is linear between (0, 1), (q, 1 −
   p) and (1, 0), that of N(μ, 1) is convex with the same ends, so it is enough that the latter is
   no higher at q, that is Φ⁻¹(p) − Φ⁻¹(q) ≤ μ. By logit u the derivative of Φ⁻¹(u) is u(1 − u)/φ(x)
   with x = Φ⁻¹(u). The square [−x, x]² has the disc of radius |x| in it, so (2u − 1)² ≥ 1 −
   e^{−x²/2}, which says 4u(1 − u) ≤ e^{−x²/2} = √(2π)φ(x). Hence Φ⁻¹(p) − Φ⁻¹(q) ≤ R√(2π)/4. ∎
3. *Both.* Steps add ½μ² up (below), so an answer all of whose steps are of 1 or 2, and which zCDP
   prices at ρ by ½ε², ε²/8 and Δ²/2σ², is charged OTHER · ρ, OTHER > π/2. (ε, δ)-DP is
   δ-approximately ε-DP, so this holds for what is charged as δ-approximately ½ε²-zCDP, and where a
   test of safety fails with probability δ. What of 1 is discrete costs more than Δ²/2σ² by a factor
   1/(1 − t²/σ²): with ρ ≤ MOST a count has σ² ≥ 1/(2ρ) ≥ 7, and t² = 7/4 gives 4/3 < OTHER, and κ <
   1.3·10⁻²⁶ an entry, so that 2⁴⁰ entries have 2K < 2.9·10⁻¹⁴, for which ROUNDING units are
   charged. Beyond MOST such an answer has no price.

4. *Secret rows.* Where rows or blocks are chosen by a secret key (mechanisms.secret_rows,
   secret_blocks), 1 to 3 hold for each key, with the key that a permutation of the rows makes of it
   on D′, which is as likely. The key is one more coin, drawn before Y_i and the same on both.

*The filter.* Fix neighbours D, D′. A question that the caps do not allow is refused; that follows
from earlier charges alone, so who asks on after it has asked nothing.

a. *One in (1 − δ″).* Toss a coin of probability 1 − δ_i for each answer and draw it from P′ or P″;
   at the end toss one of probability (1 − δ″)/Π(1 − δ_i), at most 1 as Σδ_i ≤ δ″. All succeed with
   probability 1 − δ″, and given that, the law of the answers is the composition Q_D of the P′. The
   same holds on D′. So P(S) ≤ δ″ + (1 − δ″)Q_D(S) and (1 − δ″)Q_D′(S) ≤ P′(S).
b. *Within e^{±K}.* Let R_D be the composition of the μ_i-GDP laws. On every path
   ΣK_i ≤ ½SLACK Σρ_i ≤ s/2, so Q and R are within e^{±s/2} of each other at every output.
c. *R is √(2ρ*)-GDP.* Given the past, answer i is a function of Y_i = N(v_i, 1) on D and N(0, 1) on
   D′, and of coins, 0 ≤ v_i ≤ μ_i a function of the past, with ½Σv_i² ≤ ρ* on every path. The
   martingale of accounting.gaussian (2) applies word by word: with a last step for what is missing
   to 2ρ*, Σv_iY_i − ρ* has under D′ exactly the law that it has for one draw of N(√(2ρ*), 1)
   against N(0, 1). (Smith & Thakurta 2022 show this filter, too.)
d. *Together.* Q_D(S) ≤ e^{s/2}R_D(S) ≤ e^{s/2}(e^{ε−s}R_D′(S) + H) ≤ e^ε Q_D′(S) + e^s H
   ≤ e^ε Q_D′(S) + δ′, and by a. P(S) ≤ δ″ + e^ε P′(S) + δ′. ∎

What is charged here is a valid charge of zCDP, too. Attacked by
tests/privacy/test_gaussian_account_privacy.py. Source: Dong, Roth & Su (2022); Smith & Thakurta
(2022).
"""

from decimal import Decimal
from fractions import Fraction
from math import ceil, exp

from reticent_server.accounting import conversions, gaussian
from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, RHO_UNITS, PrivacyCost

SLACK = Fraction(1, 1000)
"""ε that is kept for discrete noise, of ρ: .004 % of an ε of 1, and .1 % of one of 10."""

COUNT_FEE = 325  # RHO_UNITS an entry of counts: 3.24·10⁻¹³ over SLACK
OTHER = Fraction(11, 7)  # π/2 = 1.57080 and a little: 1.57143
MOST = RHO_UNITS // 14  # of zCDP's ρ: ε = 2 at δ = 10⁻⁶
ROUNDING = 32  # RHO_UNITS: 2.9·10⁻¹⁴ over SLACK is 29
UNPAYABLE = 2**63 - 1  # RHO_UNITS: more than any cap
_WIDEST = 2  # of zCDP's ρ*: where the search for ρ* ends; it is 1.03 to 1.7 for δ up to .001


def price(cost: PrivacyCost) -> int:
    """What an answer is charged of ρ under the rule gdp, in RHO_UNITS, rounded up; UNPAYABLE where
    it has no price.
    """
    if cost.gaussian:
        return cost.gaussian
    return ceil(OTHER * cost.rho) + ROUNDING if cost.rho <= MOST else UNPAYABLE


def caps(epsilon_units: int, delta_units: int, second: int | None = None) -> tuple[int, int]:
    """(ρ*, δ″) of an account with total (ε, δ), in units; ρ* is 0 where there is none.

    second: δ″ in DELTA_UNITS, from 0 to δ; None: a tenth of δ.
    """
    second = delta_units // conversions.DELTA_FOR_QUERIES if second is None else second
    first = delta_units - second
    widest = _WIDEST * conversions.max_rho(epsilon_units, first)
    slack = ceil(SLACK * widest * EPSILON_UNITS / RHO_UNITS)
    start = conversions.max_rho(epsilon_units - slack, first)
    if start <= 0:
        return 0, second
    target = Decimal(first) / DELTA_UNITS * (1 - Decimal(slack) / EPSILON_UNITS)
    found = gaussian.largest(Decimal(epsilon_units - slack) / EPSILON_UNITS, target, start)
    return min(found, widest), second


def epsilon_of(rho_amount: int, delta: float) -> float:
    """The ε at which amounts charged of ρ (RHO_UNITS together) give (ε, δ)-DP, with what d. keeps
    for discrete noise; for display, in floats.
    """
    slack = float(SLACK) * rho_amount / RHO_UNITS
    return gaussian.epsilon_of(rho_amount, delta * exp(-slack)) + slack
