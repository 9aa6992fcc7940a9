# SPDX-License-Identifier: Apache-2.0
"""Signatures of this installation: JSON Web Signatures (RFC 7515) with Ed25519 (RFC 9864).

One key signs certificates and protocols, so each has a type in the header that is signed (RFC 7515,
4.1.9), and a document of another type than is asked for is refused, whatever members it has.

The key is made at the first use and kept with the secrets. Its fingerprint, the key's thumbprint of
RFC 7638, is what a curator publishes once; who has it can check every document that follows without
asking the server.
"""

from base64 import urlsafe_b64encode
from dataclasses import replace

from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import OKPKey

from reticent_server.access.secret_places import SecretsPlace
from reticent_server.errors import CuratorError

ALGORITHM = "Ed25519"
CERTIFICATE = "reticent-certificate+json"
PROTOCOL = "reticent-protocol+json"
"""The types of what is signed."""

LARGEST = 4 << 20
"""Bytes of a signed document: some hundred times the usual."""

_NO_KEY = (
    "The secrets lack the key that documents are signed with, and it cannot be written there: add "
    '"signing": {…} with a JSON Web Key of the curve Ed25519, private part included.'
)

_NOT_SIGNED = "This is no document that a Reticent installation has signed, or it was changed."
_OTHER_TYPE = (
    "A Reticent installation has signed this as something else than {}, or with a version that "
    "gave no type: have it signed again."
)
_NAMES = {CERTIFICATE: "a certificate", PROTOCOL: "a protocol"}


def sign(place: SecretsPlace, payload: bytes, kind: str) -> str:
    """The compact form of a signature over `payload`, with its type and the public key in its
    header. Raises CuratorError where the secrets hold no key and cannot be written.
    """
    key = _key(place)
    header = {"alg": ALGORITHM, "typ": kind, "jwk": key.as_dict(private=False)}
    return jws.serialize_compact(header, payload, key, algorithms=[ALGORITHM])


def _key(place: SecretsPlace) -> OKPKey:
    """Made at the first use. Raises CuratorError."""
    known = place.load().signing
    if not known:
        fresh = OKPKey.generate_key("Ed25519").as_dict(private=True)
        made = {name: str(value) for name, value in fresh.items()}
        try:
            place.change(lambda now: replace(now, signing=now.signing or made))
        except CuratorError:
            raise CuratorError(_NO_KEY) from None
        known = place.load().signing
    return OKPKey.import_key(dict(known))


def _registry() -> jws.JWSRegistry:
    """The one algorithm, for documents that are longer than tokens."""
    registry = jws.JWSRegistry(algorithms=[ALGORITHM])
    registry.max_payload_length = LARGEST
    return registry


def fingerprint(place: SecretsPlace) -> str:
    """The fingerprint of this installation's key: 43 characters. Raises CuratorError as `sign`
    does."""
    return str(_key(place).thumbprint())


def opened(text: str, kind: str) -> tuple[bytes, str]:
    """What was signed as that type, and the fingerprint of the key that has signed it. Raises
    CuratorError for anything else. Who signed is known only to somebody who knows the fingerprint
    from elsewhere.
    """
    try:
        header = jws.extract_compact(text.strip().encode(), registry=_registry()).headers()
        key = OKPKey.import_key(header["jwk"])
        found = jws.deserialize_compact(text.strip(), key, registry=_registry())
    except (JoseError, KeyError, ValueError, TypeError, AttributeError):
        raise CuratorError(_NOT_SIGNED) from None
    if header.get("typ") != kind:
        raise CuratorError(_OTHER_TYPE.format(_NAMES[kind]))
    return found.payload, str(key.thumbprint())


def opened_detached(text: str, payload: bytes, kind: str) -> str:
    """The fingerprint of the key whose signature of `payload` this is, detached (RFC 7515,
    appendix F). Raises CuratorError for anything else.
    """
    header, _, signature = text.strip().partition("..")
    body = urlsafe_b64encode(payload).rstrip(b"=").decode()
    return opened(f"{header}.{body}.{signature}", kind)[1]
