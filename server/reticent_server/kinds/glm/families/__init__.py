# SPDX-License-Identifier: Apache-2.0
"""Families of generalised linear models: one file each, one list."""

from collections.abc import Mapping

from reticent_server.kinds.glm.families.base import GlmFamily
from reticent_server.kinds.glm.families.binomial import BINOMIAL
from reticent_server.kinds.glm.families.gamma import GAMMA
from reticent_server.kinds.glm.families.negative_binomial import NEGATIVE_BINOMIAL
from reticent_server.kinds.glm.families.poisson import POISSON

FAMILIES: Mapping[str, GlmFamily] = {
    family.name: family for family in (BINOMIAL, POISSON, GAMMA, NEGATIVE_BINOMIAL)
}
