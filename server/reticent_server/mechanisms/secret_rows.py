# SPDX-License-Identifier: Apache-2.0
"""The secret choice of a release's random part of the rows.

Proof, for a release whose sums go over the rows S of one choice, and over all rows. Let D and D′
hold the records of neighbours, each in any order: there is a permutation σ of the positions after
which they differ in at most m of them. For every S, the release of D on S and that of D′ on σ(S)
add the same records but for those (domain.steps.SumStep), so their divergence is at most what the
sums are charged. That goes for all steps of the release together, those over all rows among them:
sums and the counts of quantile trees (mechanisms.quantile_tree, which spreads ties by numbers of
records, not by position) are the same for every order of the records that they add, and adaptive
composition holds for each S. S and σ(S) have the same law, because positions are chosen
independently of each other and of the records. Where a unit has several places, these are chosen
together: σ then moves whole units, and the same holds of them. The whole release is the mixture
over S, and the Rényi divergences of mixtures with the same weights are at most the largest of the
components' (quasi-convexity). So the cost is that of the sums over all rows, for tables in any
order, sorted by a private value or not.

Nothing is charged less for the choice being secret. The number of rows chosen does not depend on
the records. Where the bits of SHAKE-128 stand in for independent ones, this is the usual assumption
on a keyed cryptographic function, as for every seed of a CSPRNG.

Source: van Erven & Harremoës (2014), Theorem 13.
"""

from secrets import token_bytes

from reticent_server.domain.row_subset import RowSubset

KEY_BYTES = 16  # 128 bits: nobody guesses which rows a step reads


def secret_key() -> bytes:
    """Draws the key of one release, for all its steps."""
    return token_bytes(KEY_BYTES)


def chosen(subset: RowSubset, key: bytes) -> RowSubset:
    """The subset that a plan asks for, by the key of its release."""
    return RowSubset(subset.stride, key, subset.unit)
