# SPDX-License-Identifier: Apache-2.0
"""Families of generalised linear models: one file each, one list."""

from collections.abc import Mapping

from reticent_server.kinds.glm.families.base import GlmFamily
from reticent_server.kinds.glm.families.binomial import BINOMIAL
from reticent_server.kinds.glm.families.gamma import GAMMA
from reticent_server.kinds.glm.families.linked import CLOGLOG, LOG_BINOMIAL, PROBIT
from reticent_server.kinds.glm.families.negative_binomial import NEGATIVE_BINOMIAL
from reticent_server.kinds.glm.families.poisson import POISSON

FAMILIES: Mapping[str, GlmFamily] = {
    family.name: family for family in (BINOMIAL, POISSON, GAMMA, NEGATIVE_BINOMIAL)
}
"""By name, each with its canonical link."""
LINKED: Mapping[tuple[str, str], GlmFamily] = {
    (family.name, family.link): family for family in (PROBIT, CLOGLOG, LOG_BINOMIAL)
}
"""By name and link: the others."""
LINKS = tuple(dict.fromkeys(family.link for family in (*FAMILIES.values(), *LINKED.values())))
"""The links of all of them."""


def family_of(name: str, link: str | None) -> GlmFamily | None:
    """The family with a link, None: its canonical one; None where there is none."""
    family = FAMILIES.get(name)
    if family is None or link in {None, family.link}:
        return family
    return LINKED.get((name, str(link)))
