# SPDX-License-Identifier: Apache-2.0
"""The visits of somebody who may ask about data sets, to a page, and with a form."""

from typing import Annotated, cast

from fastapi import Depends

from reticent_server.domain.principal import Principal
from reticent_server.domain.roles import Act
from reticent_server.web.visits import SignedFor, Visit, posted_again, posted_for

Asking = Annotated[Visit, Depends(SignedFor(Act.ASK))]
Running = Annotated[Visit, Depends(posted_again(Act.ASK))]
Cancelling = Annotated[Visit, Depends(posted_for(Act.ASK))]
Wishing = Annotated[Visit, Depends(posted_for(Act.REQUEST))]


def asker(visit: Visit) -> Principal:
    """Who asks; somebody has signed in for each of these visits."""
    return cast(Principal, visit.holder)
