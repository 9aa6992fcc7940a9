# SPDX-License-Identifier: Apache-2.0
"""Where the server listens, and whether keys are safe on the way there."""

import socket
import ssl
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import NoReturn

from reticent_server.errors import CuratorError

BACKLOG = 512


@dataclass(frozen=True, slots=True)
class Tls:
    """PEM files: the certificate with its chain, and its private key."""

    certificate: Path
    key: Path


def tls_of(certificate: Path | None, key: Path | None) -> Tls | None:
    """The two files, or None for neither. Raises CuratorError unless they belong together."""
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise CuratorError("--tls-cert and --tls-key go together.")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, _no_password)
    except (OSError, ValueError):  # ssl.SSLError is an OSError
        raise CuratorError(
            "--tls-cert and --tls-key must be a certificate and its key, in PEM, without a "
            "password."
        ) from None
    return Tls(certificate, key)


def _no_password() -> NoReturn:
    raise ValueError("a password is asked for")


def refuse_exposure(host: str, tls: Tls | None, *, behind_proxy: bool) -> None:
    """Raises CuratorError where keys would travel in the clear to another machine."""
    if tls is None and not behind_proxy and not _is_loopback(host):
        raise CuratorError(
            f"{host} can be reached from other machines, and keys would travel in the clear: give "
            "--tls-cert and --tls-key, or --behind-proxy where a proxy in front ends TLS."
        )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. It names TCP as its protocol: asyncio sets TCP_NODELAY only then, without
    which a reply in two parts takes 40 ms. Raises CuratorError."""
    listener = None
    try:
        addresses = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
        )
        family, kind, protocol, _, address = addresses[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except (OSError, UnicodeError) as error:
        if listener is not None:
            listener.close()
        reason = getattr(error, "strerror", None) or "not an address"
        raise CuratorError(f"Cannot listen on {host}, port {port}: {reason}.") from None
    return listener


def url_of(host: str, listener: socket.socket, tls: Tls | None) -> str:
    """The address to tell, such as http://127.0.0.1:8000."""
    shown = f"[{host}]" if ":" in host else host
    scheme = "http" if tls is None else "https"
    return f"{scheme}://{shown}:{listener.getsockname()[1]}"
