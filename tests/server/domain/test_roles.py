# SPDX-License-Identifier: Apache-2.0
"""The table of roles, written out a second time: whoever changes it changes what somebody may
do.
"""

import pytest

from reticent_server.domain.principal import Principal
from reticent_server.domain.roles import LEAST, MAY, STAFF, Act, Role, parse_roles
from reticent_server.errors import InvalidRequest, WrongRole

TABLE = {
    Role.ANALYST: {"ASK", "REQUEST"},
    Role.CURATOR: {"LOOK", "LOAD", "SET_POLICY", "PROFILE", "MANAGE_ANALYSTS", "APPROVE"},
    Role.BUDGET_OFFICER: {"LOOK", "SET_BUDGETS", "DECIDE", "APPROVE"},
    Role.AUDITOR: {"LOOK", "EXPORT"},
    Role.OPERATOR: {"MEASURE"},
}


def holder(*roles: Role) -> Principal:
    return Principal("cu_1", "carol", frozenset(roles))


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("act", Act)
def test_a_role_may_do_what_the_table_says(role: Role, act: Act) -> None:
    assert set(MAY) == set(Act)
    assert holder(role).may(act) == (act.name in TABLE[role])
    if act.name in TABLE[role]:
        holder(role).require(act)
    else:
        with pytest.raises(WrongRole, match=f"may not {act}"):
            holder(role).require(act)


def test_several_roles_may_do_what_each_may() -> None:
    both = holder(Role.AUDITOR, Role.OPERATOR)
    assert {act.name for act in Act if both.may(act)} == {"LOOK", "EXPORT", "MEASURE"}
    assert not any(holder().may(act) for act in Act)


def test_new_keys_have_the_least_role() -> None:
    """One that may do no more than any other of the staff, and neither sees nor changes
    anything.
    """
    (least,) = LEAST
    assert len(TABLE[least]) == min(len(TABLE[role]) for role in STAFF)
    assert not TABLE[least] & {"LOOK", "SET_BUDGETS", "MANAGE_ANALYSTS", "LOAD"}


@pytest.mark.parametrize("texts", [(), ("analyst",), ("curator", "analyst"), ("boss",), ("",)])
def test_other_words_are_no_roles(texts: tuple[str, ...]) -> None:
    with pytest.raises(InvalidRequest, match="budget_officer"):
        parse_roles(texts)
