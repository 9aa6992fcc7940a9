# SPDX-License-Identifier: Apache-2.0
"""The visit of somebody who may look at the console."""

from typing import Annotated

from fastapi import Depends

from reticent_server.domain.roles import Act
from reticent_server.web.visits import SignedFor, Visit

Signed = Annotated[Visit, Depends(SignedFor(Act.LOOK))]
