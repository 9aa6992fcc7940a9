# SPDX-License-Identifier: Apache-2.0
"""The way in: a server's address and an analyst's key."""

import ssl
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any
from urllib.parse import quote

import httpx

from reticent._budget import Budget
from reticent._dataset import Dataset
from reticent._http import Http, parsed
from reticent._projects import Project, ProjectRequest, request_body
from reticent._reading import read, read_all
from reticent._release import Release
from reticent._release_list import ReleaseList


class Client:
    """A connection to a Reticent server.

    base_url: such as "https://stats.example.org". key: an analyst's key; None: that of the
    environment's RETICENT_KEY, or of the file that RETICENT_KEY_FILE names. verify: a file of
    certificates of the authority that signed the server's, an ssl.SSLContext, or False, which
    checks no certificate. proxy: such as "http://proxy.example.org:3128"; None: as the environment
    says. transport: an httpx transport in place of the network. timeout: seconds to wait for a
    reply; a release comes at its plan's deadline. retries: further attempts after a connection
    error, 429, 502, 503 or 504, with growing pauses; a release that is tried again is never charged
    again. sleep: waits some seconds. progress: show a bar while releases are computed; None means
    on a terminal. Ctrl-C then cancels a release whose computation has not begun, which gives its
    cost back.

    >>> client = reticent.Client("http://127.0.0.1:8000", key=key)
    >>> fit = client.dataset("houses").mean("price", epsilon=0.5)
    """

    def __init__(
        self,
        base_url: str,
        key: str | None = None,
        *,
        verify: bool | str | ssl.SSLContext = True,
        proxy: str | None = None,
        transport: httpx.BaseTransport | None = None,
        timeout: float = 300.0,
        retries: int = 4,
        sleep: Callable[[float], None] = time.sleep,
        progress: bool | None = None,
    ) -> None:
        self._base_url = base_url
        self._http = Http(
            base_url,
            key,
            verify=verify,
            proxy=proxy,
            transport=transport,
            timeout=timeout,
            retries=retries,
            sleep=sleep,
            progress=sys.stderr.isatty() if progress is None else progress,
        )

    def datasets(self) -> list[Dataset]:
        """Every data set that is granted to the key.

        >>> [ds.name for ds in client.datasets()]
        """
        return parsed(self._datasets, self._http.get("/v1/datasets"))

    def dataset(
        self, name: str, *, project: str | None = None, protocol: str | None = None
    ) -> Dataset:
        """One data set. Raises NotFound: absent and not granted look alike.

        project: the name of the project whose budget pays; None: your own, or the only project of
        yours that has the data set. protocol: the digest of a protocol that its curator has
        accepted: the server then refuses, before a charge, whatever is not as the protocol says.

        >>> client.dataset("houses").n
        """
        content = self._http.get(f"/v1/datasets/{quote(name, safe='')}")
        return parsed(
            lambda found: Dataset.from_json(found, self._http, project, protocol), content
        )

    def projects(self) -> list[Project]:
        """The projects that the caller is a member of.

        >>> [project.name for project in client.projects()]
        """
        content = self._http.get("/v1/projects")
        return parsed(lambda found: [*map(Project.from_json, found["projects"])], content)

    def request_project(
        self,
        name: str,
        *,
        purpose: str,
        budgets: Mapping[str, tuple[float, float]],
        plan: Sequence[Mapping[str, Any]],
        members: Sequence[str] = (),
        ends_on: str | None = None,
    ) -> ProjectRequest:
        """Asks for a project, which a budget officer approves, changes or refuses. Free.

        budgets: (epsilon, delta) by data set. plan: what is to be asked, each by
        `reticent.planned`. members: names of other analysts. ends_on: the last day, as
        "2030-12-31".

        >>> client.request_project(
        ...     "prices",
        ...     purpose="What a bathroom adds to the price",
        ...     budgets={"houses": (2.0, 1e-6)},
        ...     plan=[reticent.planned("houses", "mean", "price", epsilon=0.5)],
        ... )
        """
        body = request_body(name, purpose, budgets, plan, members, ends_on)
        return parsed(ProjectRequest.from_json, self._http.post("/v1/requests", body))

    def requests(self) -> list[ProjectRequest]:
        """The caller's requests for projects, those that wait first.

        >>> [(asked.name, asked.status) for asked in client.requests()]
        """
        content = self._http.get("/v1/requests")
        return parsed(lambda found: [*map(ProjectRequest.from_json, found["requests"])], content)

    def budget(self) -> Budget:
        """The caller's accounts: total, spent and remaining.

        >>> client.budget()["houses"].remaining.epsilon
        """
        content = self._http.get("/v1/budget")
        return parsed(lambda found: Budget.from_json(found, self.releases), content)

    def release(self, release_id: str) -> Release:
        """One of the caller's own releases, again and for free.

        >>> count = ds.count(epsilon=0.1)
        >>> client.release(count.id).value
        """
        return read(self._http.get(f"/v1/releases/{quote(release_id, safe='')}"))

    def wait(self, release_id: str) -> Release:
        """One of the caller's own releases, when it is there.

        >>> client.wait(ds.submit("count", epsilon=0.1).id)
        """
        path = f"/v1/releases/{quote(release_id, safe='')}"
        return read(self._http.wait(self._http.get(path)))

    def cancel(self, release_id: str) -> Release:
        """Cancels a release whose computation has not begun, and gives back its cost. Raises
        Conflict where it has begun.

        >>> pending = ds.submit("count", epsilon=0.1)
        >>> try:
        ...     client.cancel(pending.id)
        ... except reticent.Conflict:
        ...     client.wait(pending.id)
        """
        return read(self._http.delete(f"/v1/releases/{quote(release_id, safe='')}"))

    def releases(self) -> ReleaseList:
        """All of the caller's own releases, newest first: a list, which shows one line for each.

        >>> [(release.id, release.status) for release in client.releases()]
        """
        return ReleaseList(read_all(self._http, "/v1/releases"))

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Client of {self._base_url}>"

    def _datasets(self, content: Any) -> list[Dataset]:
        return [Dataset.from_json(found, self._http) for found in content["datasets"]]
