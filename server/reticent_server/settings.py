# SPDX-License-Identifier: Apache-2.0
"""The process's settings: one class, environment prefix RETICENT_, no secrets with defaults."""

import os
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import InitErrorDetails

PREFIX = "RETICENT_"
MIN_POOL = 2
"""Connections of a process: one for who writes, one for who must be answered meanwhile."""

_ORIGIN = r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?"
_NEAR = r"http://(127\.0\.0\.1|localhost|\[::1\])(:[0-9]{1,5})?"
_SECURE = rf"(https://[A-Za-z0-9.-]+(:[0-9]{{1,5}})?|{_NEAR})"
"""The beginning of an address that nobody on the way can read or change."""

_BELOW = r"(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*"
"""A path of plain segments, none of which begins with a dot; it does not end in "/"."""

_ALGORITHM = "(RS256|RS384|RS512|PS256|PS384|PS512|ES256|ES384|ES512|EdDSA|Ed25519)"
"""Signatures of RFC 7518 and 8037 with a public key; none of a shared secret, and not \"none\"."""


_OF_CLIENTS = {"key"}
"""Variables that the Python and the R client read, on a machine that may have a server, too."""


class Settings(BaseModel):
    """Read from RETICENT_* variables; relative SQLite paths are in the working directory.

    A variable of that prefix that is none of these is refused: a misspelt limit is no limit.
    (RETICENT_KEY is the clients' own.) A number whose variable is empty has its default.
    max_body_seconds: for a request's head, and then for its body. upload_bytes: of a file that a
    curator sends to the console, 0: none is taken; upload_seconds: for its way here;
    staging_folder: where it waits for its schema, by default beside a vault that is a file.
    sources_folder: with folders of Parquet files, which curators may register in the console; none:
    no folder. s3_endpoint: of registered Parquet files at s3://…, https://HOST[:PORT], or http://
    of this machine; empty: AWS. s3_region: of the buckets; empty: as AWS_REGION says. s3_ca: PEM
    file of the authority of that endpoint; none: the system's. Credentials are not settings: they
    come from AWS_ACCESS_KEY_ID and the like, a profile or the machine's role. release_threads: of
    this process, for releases that are waited for; one analyst has at most half. plan_slots: pieces
    of free work (plans, forecasts, previews, simulations) at a time, of all worker processes
    together and one at least of each; one caller has one at a time. plan_queue: how many more of
    one caller's wait. plan_seconds: processor time of one; plan_megabytes: memory of a process that
    plans, which is started when the first takes long. release_slots: releases answered later that
    are computed side by side. queue_seconds: how far ahead one analyst's last planned answer may
    be. cancels_per_minute: of one analyst, over all processes. source_url: of the external database
    for `dataset register`, where a command line would show it. dask_scheduler: tls://HOST:PORT,
    with the PEM files dask_ca, dask_certificate and dask_key of a client; none: `dask_workers`
    processes on this machine. secrets_json: the secrets themselves, or secrets_command: a command
    that prints them (both instead of secrets_file, and never written). key_file: with a key, as
    whose holder commands act, with the rights of its roles; none: with every right. anchor_file:
    where heads of the ledger's chain are written down, best on another machine's disk: a file, or a
    directory that is there (a file for each). A server whose database does not have the last one in
    its chain does not start. anchor_seconds: between two of them. database_connections,
    vault_connections: how many this server may hold open, all its worker processes together;
    several servers on one PostgreSQL add up. requests_per_minute: of one key, over all processes on
    the database; sign_ins_per_minute: attempts at the console, of one key, and of all unknown ones
    together. cors_origins: of the web pages, separated by blanks, that browsers may let ask; none
    by default. root_path: below which a proxy serves this server, and which it takes from requests;
    empty: none. oidc_issuer: the identity provider, as its tokens name it; empty: keys only.
    oidc_client_id, and oidc_client_secret_file where it has a secret: this server as the provider
    knows it. oidc_redirect_url: of the console, as registered there; without it the console takes
    keys only. oidc_workbench_redirect_url: the same of the analysts' workbench. oidc_audience: of
    bearer tokens, by default the client id. oidc_acr, oidc_amr: separated by blanks, values of
    which a token must have one, to be one of the staff or, by oidc_assurance_of, to be anybody.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    database_url: str = Field(default="sqlite:///reticent.db", repr=False)
    vault_url: str = Field(default="sqlite:///reticent-vault.db", repr=False)
    source_url: str = Field(default="", repr=False)
    secrets_file: Path = Path("reticent-secrets.json")
    secrets_json: str = Field(default="", repr=False)
    secrets_command: str = ""
    key_file: Path | None = None
    anchor_file: Path | None = None
    anchor_seconds: int = Field(default=300, ge=1, le=86_400)
    database_connections: int = Field(default=40, ge=MIN_POOL, le=10_000)
    vault_connections: int = Field(default=16, ge=1, le=10_000)
    reply_grid_ms: int = Field(default=10, ge=0, le=60_000)
    engine: Literal["local", "dask"] = "local"
    dask_scheduler: str = ""
    dask_ca: Path | None = None
    dask_certificate: Path | None = None
    dask_key: Path | None = None
    dask_workers: int = Field(default=2, ge=1, le=256)
    threads: int = Field(default=2, ge=1, le=256)
    block_rows: int = Field(default=1 << 15, ge=1, le=1 << 20)
    cache_bytes: int = Field(default=1 << 30, ge=0)
    max_body_bytes: int = Field(default=64 * 1024, ge=1024, le=16 << 20)
    max_body_seconds: int = Field(default=30, ge=1, le=600)
    upload_bytes: int = Field(default=64 << 20, ge=0, le=1 << 30)
    upload_seconds: int = Field(default=600, ge=1, le=3600)
    staging_folder: Path | None = None
    sources_folder: Path | None = None
    s3_endpoint: str = Field(default="", max_length=255, pattern=rf"^({_SECURE})?$")
    s3_region: str = Field(default="", max_length=64, pattern=r"^[a-z0-9-]*$")
    s3_ca: Path | None = None
    requests_per_minute: int = Field(default=600, ge=1, le=10**9)
    sign_ins_per_minute: int = Field(default=10, ge=1, le=10**9)
    cors_origins: str = Field(default="", pattern=rf"^({_ORIGIN}( {_ORIGIN})*)?$")
    root_path: str = Field(default="", max_length=255, pattern=rf"^{_BELOW}$")
    oidc_issuer: str = Field(default="", max_length=255, pattern=rf"^({_SECURE}(/[!-~]*)?)?$")
    oidc_client_id: str = Field(default="", max_length=255, pattern=r"^[ -~]*$")
    oidc_client_secret_file: Path | None = None
    oidc_redirect_url: str = Field(
        default="", pattern=rf"^({_SECURE}{_BELOW}/console/oidc/callback)?$"
    )
    oidc_workbench_redirect_url: str = Field(
        default="", pattern=rf"^({_SECURE}{_BELOW}/workbench/oidc/callback)?$"
    )
    oidc_audience: str = Field(default="", max_length=255, pattern=r"^[ -~]*$")
    oidc_algorithms: str = Field(
        default="RS256 PS256 ES256", pattern=rf"^{_ALGORITHM}( {_ALGORITHM})*$"
    )
    oidc_acr: str = Field(default="", max_length=1000, pattern=r"^[ -~]*$")
    oidc_amr: str = Field(default="", max_length=1000, pattern=r"^[ -~]*$")
    oidc_assurance_of: Literal["staff", "everybody"] = "staff"
    lease_seconds: int = Field(default=600, ge=1)
    release_threads: int = Field(default=64, ge=1, le=1024)
    plan_slots: int = Field(default=2, ge=1, le=256)
    plan_queue: int = Field(default=4, ge=1, le=256)
    plan_seconds: float = Field(default=10, ge=0.1, le=600)
    plan_megabytes: int = Field(default=1024, ge=512, le=1 << 16)
    release_slots: int = Field(default=4, ge=1, le=256)
    queue_seconds: int = Field(default=600, ge=1)
    cancels_per_minute: int = Field(default=30, ge=1, le=10**9)
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    def __init__(self, **given: Any) -> None:
        """What is not given is read from the environment. Raises ValidationError."""
        said = {
            name.upper().removeprefix(PREFIX).lower(): value
            for name, value in os.environ.items()
            if name.upper().startswith(PREFIX)
        }
        fields = type(self).model_fields
        unknown = sorted(said.keys() - fields.keys() - _OF_CLIENTS)
        if unknown:
            raise ValidationError.from_exception_data("Settings", [_unknown(n) for n in unknown])
        known = {
            name: value
            for name, value in said.items()
            if name not in _OF_CLIENTS and (value or fields[name].annotation not in {int, float})
        }
        super().__init__(**(known | given))


def _unknown(name: str) -> InitErrorDetails:
    return InitErrorDetails(type="extra_forbidden", loc=(name,), input=None)
