# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI document: valid references, every error documented, replies as it says."""

import json
from typing import Any

import pytest

from reticent_server.api.problems import MEDIA_TYPE
from reticent_server.kinds import KINDS
from reticent_server.pipeline.services import Services
from support.installations.small import Api, Installation, copied, opened, request_body
from support.kinds.examples import FIELDS

ALWAYS = {401, 403, 429, 500, 503}
EXPECTED = {
    ("get", "/healthz"): {200},
    ("get", "/readyz"): {200, 503},
    ("get", "/v1/datasets"): {200, *ALWAYS},
    ("get", "/v1/datasets/{name}"): {200, 404, *ALWAYS},
    ("get", "/v1/datasets/{name}/published"): {200, 404, 422, *ALWAYS},
    ("post", "/v1/datasets/{name}/persons"): {200, 404, 408, 413, 422, *ALWAYS},
    ("get", "/v1/budget"): {200, *ALWAYS},
    ("get", "/v1/projects"): {200, *ALWAYS},
    ("post", "/v1/requests"): {201, 408, 409, 413, 422, *ALWAYS},
    ("get", "/v1/requests"): {200, *ALWAYS},
    ("post", "/v1/plans"): {200, 404, 408, 413, 422, *ALWAYS},
    ("post", "/v1/releases"): {201, 202, 404, 408, 409, 413, 422, *ALWAYS},
    ("get", "/v1/releases"): {200, 422, *ALWAYS},
    ("get", "/v1/releases/{release_id}"): {200, 404, *ALWAYS},
    ("delete", "/v1/releases/{release_id}"): {200, 404, 409, *ALWAYS},
}


@pytest.fixture
def api(services: Services, installation: Installation) -> Api:
    return Api(services, installation.keys["ana"])


@pytest.fixture(scope="module")
def document(
    installation_template: Installation, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    directory = tmp_path_factory.mktemp("document") / "installation"
    with copied(installation_template, directory) as own, opened(own.settings) as services:
        found: dict[str, Any] = Api(services, own.keys["ana"]).get("/openapi.json").json()
    return found


def operations(document: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    paths = document["paths"].items()
    return {(method, path): op for path, found in paths for method, op in found.items()}


@pytest.mark.slow
def test_every_route_documents_every_status(document: dict[str, Any]) -> None:
    found = {key: set(map(int, op["responses"])) for key, op in operations(document).items()}
    assert found == EXPECTED


def test_errors_are_problems_and_replies_have_a_shape(document: dict[str, Any]) -> None:
    for operation in operations(document).values():
        for status, response in operation["responses"].items():
            media = MEDIA_TYPE if int(status) >= 400 else "application/json"
            assert list(response["content"]) == [media]
            reference = response["content"][media]["schema"]["$ref"]
            name = reference.removeprefix("#/components/schemas/")
            assert (name == "Problem") == (media == MEDIA_TYPE)


def test_every_reference_is_defined(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    text = json.dumps(document)
    used = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert used <= set(schemas)
    assert "HTTPValidationError" not in schemas


def test_the_key_is_asked_for(document: dict[str, Any]) -> None:
    for (_, path), operation in operations(document).items():
        assert bool(operation.get("security")) == path.startswith("/v1/")


@pytest.mark.slow
def test_the_document_s_own_names_are_accepted(api: Api, document: dict[str, Any]) -> None:
    """Each kind that the document lists is a kind that the server plans."""
    mapping = document["components"]["schemas"]["RequestBody"]["properties"]["query"]
    kinds = set(mapping["discriminator"]["mapping"])
    for kind in kinds:
        reply = api.post("/v1/plans", request_body({"kind": kind} | FIELDS[kind]))
        assert reply.status_code == 200
    assert kinds == {kind.name for kind in KINDS if kind.for_analysts} == set(FIELDS)
