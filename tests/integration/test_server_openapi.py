"""The OpenAPI document is right, and nothing that fits or nearly fits it makes the server fail."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
import schemathesis
from hypothesis import given
from openapi_spec_validator import validate
from tests.services import Hosting, slow_on_postgresql

from daskscope.server.routes import ROUTES
from daskscope.testing.hosted import HostedServer
from daskscope.testing.samples import sample_frames, sample_recording

#: Each route is asked this often with what fits the document, and as often with what does not.
EXAMPLES = 4


@pytest.fixture(scope="module")
def server(hosted_once: Hosting, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostedServer]:
    with hosted_once(tmp_path_factory.mktemp("openapi")) as server:
        yield server


@pytest.fixture(scope="module")
def document(server: HostedServer) -> dict[str, Any]:
    found: dict[str, Any] = server.ask("GET", "/api/v1/openapi.json").json()
    return found


def test_the_document_is_valid_and_names_every_route(document: dict[str, Any]) -> None:
    validate(document)
    documented = {(method.upper(), path) for path, item in document["paths"].items() for method in item}
    assert documented == {(route.method, route.path) for route in ROUTES}


def test_every_operation_says_what_an_error_looks_like(document: dict[str, Any]) -> None:
    for item in document["paths"].values():
        for operation in item.values():
            assert operation["responses"]["default"]["content"]["application/json"]["schema"] == {
                "$ref": "#/components/schemas/Error"
            }


def known(server: HostedServer) -> dict[str, str]:
    """Something that is there, for every part of a path."""
    assert server.send(sample_frames("c")).status == 200
    reports = [server.ask("POST", "/api/v1/reports", data).json() for data in (sample_recording(), b"<!doctype html>")]
    errors = server.ask("GET", "/api/v1/errors").json()["items"]
    return {
        "cluster": "c",
        "computation": "sample-comp",
        "block": "0",
        "report": str(reports[0]["id"]),
        "share": reports[1]["url"].rpartition("/")[2],
        "fingerprint": errors[0]["fingerprint"],
        "token": "1",
        "user": "local",
    }


def operations(document: dict[str, Any], there: dict[str, str], url: str) -> Iterator[Any]:
    document = copy.deepcopy(document)
    for path, item in document["paths"].items():
        for operation in item.values():
            for parameter in operation["parameters"]:
                if parameter["in"] == "path":
                    parameter["schema"] = {
                        "anyOf": [{"enum": [there[parameter["name"]]]}, {"type": "string", "minLength": 1}]
                    }
        if path == "/api/v1/ingest":
            # Bytes: tests/integration/test_server_ingest.py.
            item.clear()
    schema = schemathesis.openapi.from_dict(document)
    schema.config.update(base_url=url)
    for found in schema.get_all_operations():
        operation = found.ok()  # type: ignore[union-attr]
        if operation.path != "/api/v1/live":
            yield operation


def ask_everything(server: HostedServer, document: dict[str, Any], mode: str) -> None:
    asked = 0
    quick = hypothesis.settings(
        max_examples=EXAMPLES, deadline=None, database=None, derandomize=True, phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )  # fmt: skip
    for operation in operations(document, known(server), server.url):

        @quick
        @given(case=operation.as_strategy(generation_mode=schemathesis.GenerationMode(mode)))
        def ask(case: Any) -> None:
            nonlocal asked
            asked += 1
            response = case.call()
            assert response.status_code < 500, (case.as_curl_command(), response.text[:300])

        try:
            ask()
        except hypothesis.errors.Unsatisfiable:
            # Nothing can be wrong with a request without parameters.
            pass
    assert asked > 100


def test_nothing_that_fits_makes_the_server_fail(server: HostedServer, document: dict[str, Any]) -> None:
    ask_everything(server, document, "positive")


@slow_on_postgresql
def test_nothing_that_nearly_fits_makes_the_server_fail(server: HostedServer, document: dict[str, Any]) -> None:
    """Most of it is refused before the database is asked."""
    ask_everything(server, document, "negative")
