# SPDX-License-Identifier: Apache-2.0
"""The wire: one httpx client, retries, and every failure as one of the package's errors."""

import json
import ssl
from collections.abc import Callable, Mapping
from pickle import PicklingError
from typing import Any, NoReturn, TypeVar
from urllib.request import getproxies, proxy_bypass

import httpx

from reticent._errors import (
    InvalidRequest,
    TransportError,
    UnexpectedReply,
    from_reply,
)
from reticent._key import find_key
from reticent._progress import Bar, wait

T = TypeVar("T")

_RETRIED_STATUSES = frozenset({429, 502, 503, 504})
_RETRIED_ERRORS = (httpx.TimeoutException, httpx.NetworkError, httpx.RemoteProtocolError)
_ALL_ERRORS = (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, httpx.CookieConflict)
_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 30.0
_CONNECT_SECONDS = 10.0
LARGEST = 64 << 20
"""Bytes of a reply: a study of 500 columns, the most, has about ten million."""
_OF_THE_WIRE = {"content-encoding", "content-length", "transfer-encoding"}
_RELEASES = "/v1/releases"


class Http:
    """Sends JSON with a key. retries: further attempts; `sleep` waits a number of seconds;
    progress: whether releases are asked for and polled, with a bar.
    """

    def __init__(
        self,
        base_url: str,
        key: str | None,
        *,
        transport: httpx.BaseTransport | None,
        timeout: float,
        retries: int,
        sleep: Callable[[float], None],
        progress: bool = False,
        verify: bool | str | ssl.SSLContext = True,
        proxy: str | None = None,
    ) -> None:
        self._progress = progress
        self._base_url = base_url
        self._retries = retries
        self._sleep = sleep
        if not base_url.startswith(("http://", "https://")):
            raise TransportError("The address of a server starts with http:// or https://.")
        checked = _certificates(verify)
        try:
            if transport is None and proxy is None:
                proxy = _environments_proxy(base_url)
            self._proxy = proxy
            self._client = httpx.Client(
                base_url=base_url,
                headers={"Authorization": f"Bearer {find_key(key)}"},
                transport=transport or (None if proxy else httpx.HTTPTransport(verify=checked)),
                timeout=httpx.Timeout(timeout, connect=min(timeout, _CONNECT_SECONDS)),
                verify=checked,
                proxy=proxy,
            )
        except (httpx.InvalidURL, ValueError) as error:  # ValueError: the proxy's
            what = "server" if proxy is None else "server or of the proxy"
            raise TransportError(f"The address of the {what} is not usable: {error}.") from error
        except ImportError:
            raise TransportError(
                f"The proxy {_address(str(proxy))} speaks SOCKS, for which httpx has an extra: "
                f"pip install 'httpx[socks]'. {_GOES_PAST}"
            ) from None

    def __reduce__(self) -> NoReturn:
        raise PicklingError(
            "A connection, and a data set or client that holds one, is not stored or sent to "
            "another process: its key would be, too. Make it again there, by "
            "reticent.Client(url).dataset(name); releases can be stored."
        )

    def close(self) -> None:
        """Ends the connections; nothing can be sent afterwards."""
        self._client.close()

    def get(self, path: str) -> Any:
        """The decoded JSON of a page under the server's address. Raises ReticentError."""
        return self._send("GET", path)

    def delete(self, path: str) -> Any:
        """Sends DELETE, and gives the decoded JSON of the reply. Raises ReticentError."""
        return self._send("DELETE", path)

    def post(self, path: str, body: Mapping[str, Any], idempotency_key: str | None = None) -> Any:
        """Posts JSON. Every attempt carries the same key, so that none is a second charge."""
        return self._send("POST", path, body, idempotency_key)

    def submit(self, body: Mapping[str, Any], idempotency_key: str) -> Any:
        """Asks for a release that is answered later; the pending one."""
        return self._send("POST", _RELEASES, body, idempotency_key, prefer="respond-async")

    def release(self, body: Mapping[str, Any], idempotency_key: str) -> Any:
        """Asks for a release and waits for it, with a bar where there is to be one."""
        if not self._progress:
            return self.post(_RELEASES, body, idempotency_key)
        return self.wait(self.submit(body, idempotency_key))

    def wait(self, document: Any) -> Any:
        """The settled document of a release."""
        return parsed(self._waited, document)

    def _waited(self, document: Any) -> Any:
        return wait(self, document, self._sleep, Bar() if self._progress else None)

    def _read(
        self, method: str, path: str, content: str | None, headers: Mapping[str, str]
    ) -> httpx.Response:
        """The reply with its content, of which no more than LARGEST is read."""
        with self._client.stream(method, path, content=content, headers=headers) as reply:
            body = bytearray()
            for chunk in reply.iter_bytes():
                body += chunk
                if len(body) > LARGEST:
                    raise UnexpectedReply(
                        f"{_address(self._base_url)} sends more than {LARGEST >> 20} MiB, which no "
                        "Reticent server does.",
                        status=reply.status_code,
                        idempotency_key=headers.get("Idempotency-Key"),
                    )
            plain = {k: v for k, v in reply.headers.items() if k not in _OF_THE_WIRE}
            return httpx.Response(
                reply.status_code, headers=plain, content=bytes(body), request=reply.request
            )

    def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
        prefer: str | None = None,
    ) -> Any:
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if prefer is not None:
            headers["Prefer"] = prefer
        if idempotency_key is not None:
            headers["Idempotency-Key"] = _checked_idempotency_key(idempotency_key)
        content = None if body is None else json.dumps(body, allow_nan=False)
        for attempt in range(self._retries + 1):
            last = attempt == self._retries
            wait = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**attempt)
            try:
                reply = self._read(method, path, content, headers)
            except _ALL_ERRORS as error:
                if last or not isinstance(error, _RETRIED_ERRORS):
                    # The wire's own stack is sixty lines that help nobody who typed an address.
                    raise _no_reply(error, self._base_url, self._proxy, idempotency_key) from None
            else:
                if last or reply.status_code not in _RETRIED_STATUSES:
                    return _content(reply, idempotency_key)
                wait = _asked_pause(reply, wait)
            self._sleep(wait)
        raise AssertionError("the last attempt returns or raises")


_MALFORMED = (
    *(KeyError, TypeError, ValueError, AttributeError, IndexError),
    *(RecursionError, OverflowError),  # of a text nested too deeply, of a huge integer
)


def parsed(parse: Callable[[Any], T], content: Any) -> T:
    """parse(content), with what a malformed reply raises as UnexpectedReply."""
    try:
        return parse(content)
    except _MALFORMED as error:
        raise UnexpectedReply(
            "The server's reply lacks what this version of the client expects; are client and "
            "server of the same version?"
        ) from error


def another_answer(idempotency_key: str | None) -> UnexpectedReply:
    """What a reply to another request is: of a connection that two processes share, or of a proxy
    that mixes replies up.
    """
    what = "The reply is the answer to another question, and is not used."
    if idempotency_key is not None:
        what += f" Ask again with idempotency_key={idempotency_key!r}: that is no second charge."
    return UnexpectedReply(what, idempotency_key=idempotency_key)


_GOES_PAST = (
    "Client(..., proxy=...) names it, else HTTP_PROXY, HTTPS_PROXY or ALL_PROXY; NO_PROXY=host "
    "goes past it."
)


def _environments_proxy(base_url: str) -> str | None:
    """The proxy by which this server is asked as the environment says; None: by none."""
    url = httpx.URL(base_url)
    proxies = getproxies()
    found = proxies.get(url.scheme) or proxies.get("all")
    if not found or proxy_bypass(url.netloc.decode("ascii")):
        return None
    return found if "://" in found else f"http://{found}"


def _certificates(verify: bool | str | ssl.SSLContext) -> bool | ssl.SSLContext:
    if not isinstance(verify, str):
        return verify
    try:
        return ssl.create_default_context(cafile=verify)
    except OSError as error:  # ssl.SSLError is one
        reason = error.strerror or "not a file of certificates"
        raise TransportError(f"verify={verify!r} cannot be read: {reason}.") from None


def _checked_idempotency_key(key: str) -> str:
    if not (key.isascii() and key.isprintable() and key.strip() == key != ""):
        raise InvalidRequest("An idempotency key is made of printable ASCII characters.")
    return key


def _content(reply: httpx.Response, idempotency_key: str | None) -> Any:
    if not reply.is_success:
        raise from_reply(reply.status_code, reply.content, idempotency_key)
    if reply.headers.get("Idempotency-Key", idempotency_key) != idempotency_key:
        raise another_answer(idempotency_key)
    try:
        return json.loads(reply.content)
    except (ValueError, RecursionError) as error:
        raise UnexpectedReply(
            "The reply is not JSON; is this the address of a Reticent server?",
            status=reply.status_code,
            idempotency_key=idempotency_key,
        ) from error


def _address(base_url: str) -> str:
    """Without a user's name and password, which a proxy may be given in an address."""
    return str(httpx.URL(base_url).copy_with(username=None, password=None, query=None))


def _likely(error: Exception, proxy: str | None) -> str:
    if proxy is not None and (_at_connecting(error) or isinstance(error, httpx.ProxyError)):
        return f"Does the proxy run? {_GOES_PAST}"
    if _at_connecting(error):
        return "Is the address right, http:// or https:// included, and does the server run?"
    if isinstance(error, httpx.TimeoutException):
        return "It may still be at work; Client(..., timeout=...) waits longer."
    return "The connection broke; try again."


def _at_connecting(error: Exception) -> bool:
    """Before anything was sent, so that the error's own text cannot hold any of it."""
    return isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)


def _asked_pause(reply: httpx.Response, otherwise: float) -> float:
    asked = reply.headers.get("Retry-After", "")
    return min(_LONGEST_PAUSE, float(asked)) if asked.isdecimal() else otherwise


def _no_reply(
    error: Exception, base_url: str, proxy: str | None, idempotency_key: str | None
) -> TransportError:
    why = f"{type(error).__name__}: {error}" if _at_connecting(error) else type(error).__name__
    by = "" if proxy is None else f" by the proxy {_address(proxy)}"
    what = f"No reply from {_address(base_url)}{by} ({why}). {_likely(error, proxy)}"
    if idempotency_key is not None:
        what += (
            " The release may have been charged: the same call with idempotency_key="
            f"{idempotency_key!r} gives it, without a second charge."
        )
    return TransportError(what, idempotency_key=idempotency_key)
