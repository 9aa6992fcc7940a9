# SPDX-License-Identifier: Apache-2.0
"""Terms with long tails, by public rows: a few persons far out, who live long, may decide Cox's
coefficient of such a term, and their scores are longer than public persons' are.
"""

from reticent_server.domain.design import Term
from reticent_server.fitting import trust
from reticent_server.fitting.heavy_terms import skewness
from reticent_server.fitting.public.coordinates import Coordinates


def long_tails(coordinates: Coordinates, terms: tuple[Term, ...]) -> list[str]:
    """The names of those of the slopes `terms` (k,), which come after a constant in `coordinates`;
    none of them a dummy.
    """
    far = trust.skewed(skewness(coordinates)[1 : len(terms) + 1])
    return [term.name for term, long in zip(terms, far, strict=True) if long and not term.dummy]
