# SPDX-License-Identifier: Apache-2.0
"""Who may do what: the one table of roles and acts.

Every route and every command names its act; `domain.principal.Principal.require` asks this table,
and nothing else does. A holder of a key has one role or several.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum

from reticent_server.errors import InvalidRequest


class Role(StrEnum):
    """What somebody is here for."""

    ANALYST = "analyst"
    CURATOR = "curator"
    BUDGET_OFFICER = "budget_officer"
    AUDITOR = "auditor"
    OPERATOR = "operator"


class Act(StrEnum):
    """What is done, as the rest of "This key may not …"."""

    ASK = "ask about data sets"
    REQUEST = "ask for projects"
    LOOK = "look at data sets, budgets, releases and the audit trail"
    EXPORT = "export the ledger"
    LOAD = "load or retire data sets"
    SET_POLICY = "set a data set's policy"
    PROFILE = "release a profile or publish a release"
    MANAGE_ANALYSTS = "manage analysts and their keys"
    SET_BUDGETS = "set or credit budgets"
    DECIDE = "approve, refuse or close projects"
    APPROVE = "decide what somebody else has proposed"
    MEASURE = "read metrics"
    INSTALL = "install, serve, or give roles"


_DESK = frozenset({Role.CURATOR, Role.BUDGET_OFFICER, Role.AUDITOR})

MAY: Mapping[Act, frozenset[Role]] = {
    Act.ASK: frozenset({Role.ANALYST}),
    Act.REQUEST: frozenset({Role.ANALYST}),
    Act.LOOK: _DESK,
    Act.EXPORT: frozenset({Role.AUDITOR}),
    Act.LOAD: frozenset({Role.CURATOR}),
    Act.SET_POLICY: frozenset({Role.CURATOR}),
    Act.PROFILE: frozenset({Role.CURATOR}),
    Act.MANAGE_ANALYSTS: frozenset({Role.CURATOR}),
    Act.SET_BUDGETS: frozenset({Role.BUDGET_OFFICER}),
    Act.DECIDE: frozenset({Role.BUDGET_OFFICER}),
    Act.APPROVE: frozenset({Role.CURATOR, Role.BUDGET_OFFICER}),
    Act.MEASURE: frozenset({Role.OPERATOR}),
    # No role: whoever runs commands on the server without a key (docs/how-to/roles.md).
    Act.INSTALL: frozenset(),
}

ANALYST = frozenset({Role.ANALYST})

STAFF = frozenset(Role) - ANALYST
"""Every role but the analyst's: what curators had before there were roles."""

LEAST = frozenset({Role.OPERATOR})
"""Of the staff's roles the one with the fewest rights: numbers about the server, and no page."""


def parse_roles(texts: Iterable[str]) -> frozenset[Role]:
    """The staff's roles of their names. Raises InvalidRequest for none, and for others."""
    given = frozenset(texts)
    if not given or not given <= {role.value for role in STAFF}:
        known = ", ".join(sorted(STAFF))
        raise InvalidRequest(f"A role is one of {known}; there must be at least one.")
    return frozenset(map(Role, given))
