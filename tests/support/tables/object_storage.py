# SPDX-License-Identifier: Apache-2.0
"""An S3 service on this machine (moto's), which answers those alone who sign with the key of the
environment.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from ssl import PROTOCOL_TLS_SERVER, SSLContext
from threading import Thread
from typing import Any
from unittest.mock import patch
from uuid import uuid4

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from pyarrow import fs
from werkzeug.serving import WSGIRequestHandler, make_server

from reticent_server.vault.object_store import ObjectStore

BUCKET = "tables"
KEY_ID, SECRET = "KEYOFTESTS", "hush-nobody-may-read-this"
_REFUSED = b"<Error><Code>AccessDenied</Code><Message>" + SECRET.encode() + b"</Message></Error>"


class _Quiet(WSGIRequestHandler):
    def log_request(self, *_: Any) -> None:
        """No line on standard error."""


@dataclass
class Storage:
    """store: as settings name it. requests: (method, path, Range) in the order they came."""

    store: ObjectStore
    host: str
    requests: list[tuple[str, str, str]]

    def put(self, directory: Path) -> str:
        """The files of a directory as objects; their address."""
        prefix = f"{BUCKET}/{uuid4().hex}/{directory.name}"
        for path in directory.iterdir():
            self.write(f"{prefix}/{path.name}", path.read_bytes())
        return f"s3://{prefix}"

    def write(self, path: str, content: bytes) -> None:
        with self.files().open_output_stream(path.removeprefix("s3://")) as stream:
            stream.write(content)

    def remove(self, path: str) -> None:
        self.files().delete_file(path.removeprefix("s3://"))

    def files(self) -> Any:
        scheme = self.store.endpoint.partition("://")[0]
        return fs.S3FileSystem(
            endpoint_override=self.host,
            scheme=scheme,
            region="us-east-1",
            allow_bucket_creation=True,
            tls_ca_file_path=self.store.authority or None,
        )


@contextmanager
def object_storage(certificate: Path | None = None, authority: str = "") -> Iterator[Storage]:
    """A service with one bucket, and credentials for it in the environment.

    certificate: a PEM file with a key, for https; authority: the file of who signed it.
    """
    application = DomainDispatcherApplication(create_backend_app)
    seen: list[tuple[str, str, str]] = []

    def guarded(environ: Any, start: Any) -> Any:
        seen.append(
            (environ["REQUEST_METHOD"], environ["PATH_INFO"], environ.get("HTTP_RANGE", ""))
        )
        if f"Credential={KEY_ID}/" in environ.get("HTTP_AUTHORIZATION", ""):
            return application(environ, start)
        start("403 Forbidden", [("Content-Type", "application/xml")])
        return [_REFUSED]

    server = make_server(
        "127.0.0.1",
        0,
        guarded,
        threaded=True,
        request_handler=_Quiet,
        ssl_context=None if certificate is None else _context(certificate),
    )
    Thread(target=server.serve_forever, daemon=True).start()
    host = f"127.0.0.1:{server.server_port}"
    scheme = "http" if certificate is None else "https"
    storage = Storage(ObjectStore(f"{scheme}://{host}", "us-east-1", authority), host, seen)
    with patch.dict(
        os.environ,
        AWS_ACCESS_KEY_ID=KEY_ID,
        AWS_SECRET_ACCESS_KEY=SECRET,
        AWS_EC2_METADATA_DISABLED="true",
    ):
        try:
            storage.files().create_dir(BUCKET)
            yield storage
        finally:
            server.shutdown()
            server.server_close()


def _context(certificate: Path) -> SSLContext:
    context = SSLContext(PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context
