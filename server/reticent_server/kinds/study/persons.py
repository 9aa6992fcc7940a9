# SPDX-License-Identifier: Apache-2.0
"""Errors of a study whose records are the rows of persons. Everything here is post-processing.

*The declared formula* has errors by person. Scores of a person's rows are added, s_u = ω_u Σ_t
x_t(vᵀz_t), and their Gram matrix is released with a clip C, which a released histogram of ‖s_u‖
chooses (fitting.person_scores):

    V_s = A M A·N/(N − 1)·(1 + lost),   M = Σ_u s_u s_uᵀ,  N persons with a row in use.

Scores of length above C are cut in M, but not in the moments. With the tail of a law whose fourth
moment is at its limit (Pareto, α = 4) each of them has lost C² of its square:
lost = C²·(persons beyond)/Σ‖s‖², a few per cent, which is too much for lighter tails. Intervals are
those of t laws whose degrees of freedom count the noise in M and N_eff
(fitting.standard_fit.Freedom).

*Other formulas*. Of moments alone nobody knows how alike a person's rows are. But for any scores
s_t of at most m rows, by Cauchy and Schwarz,

    Var Σ_t s_t ≤ m Σ_t Var s_t,        attained where all rows of a person are the same,

so that m times the covariance that rows without anything in common have is too large or right,
whatever they have in common. It holds for what is linear in sums over rows, hence to first order
for every analysis of a study, where the covariance for independent rows would hold. For errors of
one variance that is σ²S_XX⁻¹, σ² the mean square of the residuals. Errors are at most √m times too
long.

*Deviations* (person effects). With the errors' deviations ẽ = e − ē of a person with T rows, and Σ̃
their covariance, cᵀΣ̃c ≤ tr Σ̃ |c|² = E‖ẽ‖²|c|². With one within variance τ² = E‖ẽ‖²/(T − 1),
estimated by residuals over rows less persons, Var Σ_t x̃_t e_t is at most (m − 1) τ² Σ_t x̃_t
x̃_tᵀ, which is the design effect (m − 1)·rows/(rows − persons) times the covariance above, whose σ²
divides by rows.
"""

from math import inf, sqrt

from reticent_server.domain.steps import FloatArray, Released
from reticent_server.fitting.person_scores import Clusters, Lengths, chosen
from reticent_server.fitting.standard_fit import Freedom
from reticent_server.kinds.study.main import Formula, GroupFit, meat
from reticent_server.kinds.study.recipe import Sampled

_LEAST_ROWS = (
    0.05  # of the rows, those beyond one a person at the least: noise may hide all of them
)


def score_lengths(formula: Formula, m: int) -> Lengths:
    """The grid of ‖s‖: a sum of m scores of length about √p each is about √(mp) long where they
    have nothing in common."""
    return Lengths(sqrt(m * len(formula.X)))


def score_clusters(lengths: Lengths, released: Released) -> Clusters:
    """C, and the persons that the meat is of."""
    # cut in M alone, they move no estimate: as many as of skewed scores at most, however large the
    # noise
    return chosen(lengths, released, noise=inf)


def persons_meat(
    formula: Formula, released: Released, fitted: GroupFit, clusters: Clusters
) -> tuple[FloatArray, Freedom]:
    """(p, p) the meat over S₀₀ in white columns, and what is known of a variance made of it."""
    persons = max(clusters.persons, 2.0)
    size = float((released.values.diagonal()).sum()) * clusters.clip**2
    beyond = clusters.clipped * clusters.persons * clusters.clip**2
    scale = persons / (persons - 1) * (1 + beyond / max(size, beyond, 1e-300))
    middle = meat(formula, released, 0, fitted, clusters.clip**2) * scale
    noise = released.sd * clusters.clip**2 / fitted.records * scale
    A = sqrt(fitted.fit.variance / fitted.records) * fitted.root
    return middle, Freedom(clusters, noise, A, 0.0)


def stretch_of(rows: float, persons: float) -> float:
    """rows/(rows − persons): by what a mean square of deviations is multiplied to be that of
    errors."""
    return 1 / max(1 - persons / rows, _LEAST_ROWS)


def design_effect(m: int, stretch: float) -> float:
    """By what the covariance of rows without anything in common is multiplied for formulas that are
    not declared. stretch: of deviations, else 1."""
    return m if stretch == 1.0 else (m - 1) * stretch


def stretch_in(sampled: Sampled, *, deviations: bool) -> float:
    """By what mean squares of residuals of a group are multiplied to be those of errors: of
    deviations more than 1.
    """
    if sampled.persons is None or not deviations:
        return 1.0
    return stretch_of(sampled.records, sampled.persons)
