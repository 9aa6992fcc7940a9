# SPDX-License-Identifier: Apache-2.0
"""What `reticent analyst` and `reticent curator` share about identities at the identity
provider.
"""

from typing import Annotated

import typer

from reticent_server.access.identity_rows import Identity
from reticent_server.cli.common import print_json
from reticent_server.errors import CuratorError, InvalidRequest
from reticent_server.pipeline.books import Books
from reticent_server.settings import Settings

Subject = Annotated[
    str | None,
    typer.Option("--oidc-subject", help="Who it is at the identity provider: the claim sub."),
]
Email = Annotated[
    str | None,
    typer.Option("--oidc-email", help="Instead of the subject, an address verified there."),
]


def identity_of(settings: Settings, subject: str | None, email: str | None) -> Identity | None:
    """The identity of the options; None where neither is given. Raises InvalidRequest,
    CuratorError.
    """
    if subject is None and email is None:
        return None
    if not settings.oidc_issuer:
        raise CuratorError("Set RETICENT_OIDC_ISSUER first: subjects are those of one provider.")
    if subject is not None and email is not None:
        raise InvalidRequest("Give --oidc-subject or --oidc-email; `link` adds another.")
    if subject is not None:
        return Identity(settings.oidc_issuer, "sub", subject)
    return Identity(settings.oidc_issuer, "email", email or "")


def needed_identity(subject: str | None, email: str | None) -> Identity:
    """As `identity_of`, which must be given."""
    identity = identity_of(Settings(), subject, email)
    if identity is None:
        raise InvalidRequest("Give --oidc-subject or --oidc-email.")
    return identity


def documents(books: Books, principal_id: str) -> list[dict[str, str]]:
    """The linked identities, for --json."""
    identities = books.identities.of(principal_id)
    return [{"issuer": i.issuer, "claim": i.claim, "value": i.value} for i in identities]


def told_without_key(name: str, principal_id: str, *, as_json: bool) -> None:
    """What was added, where there is no key to print."""
    if as_json:
        print_json({"id": principal_id, "name": name})
    else:
        typer.echo(f"{name} is added, and signs in at the identity provider.", err=True)
