"""The OpenAPI document is correct, and no valid or almost valid request makes the server fail."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
from hypothesis import given
from tests.helpers.compared_runs import measured_run
from tests.helpers.hosted import HostedServer
from tests.helpers.samples import sample_frames, sample_recording
from tests.helpers.services import Hosting

from daskscope.server.routes import ROUTES

#: The number of valid requests per route, and of invalid ones.
EXAMPLES = 4
#: All routes in one test would take 20 s of CPU time, and on a busy machine longer than a test may.
PARTS = 4


@pytest.fixture(scope="module")
def server(hosted_once: Hosting, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostedServer]:
    with hosted_once(tmp_path_factory.mktemp("openapi")) as server:
        yield server


@pytest.fixture(scope="module")
def document(server: HostedServer) -> dict[str, Any]:
    found: dict[str, Any] = server.ask("GET", "/api/v1/openapi.json").json()
    return found


def test_the_document_is_valid_and_names_every_route(document: dict[str, Any]) -> None:
    # Not above: every test process imports this file.
    from openapi_spec_validator import validate

    validate(document)
    documented = {(method.upper(), path) for path, item in document["paths"].items() for method in item}
    assert documented == {(route.method, route.path) for route in ROUTES}


def test_every_operation_documents_its_errors(document: dict[str, Any]) -> None:
    for item in document["paths"].values():
        for operation in item.values():
            assert operation["responses"]["default"]["content"]["application/json"]["schema"] == {
                "$ref": "#/components/schemas/Error"
            }


def known_values(server: HostedServer) -> dict[str, str]:
    """Return an existing value for every path parameter."""
    assert server.send(sample_frames("c")).status == 200
    reports = [server.ask("POST", "/api/v1/reports", data).json() for data in (sample_recording(), b"<!doctype html>")]
    errors = server.ask("GET", "/api/v1/errors").json()["items"]
    kept = server.ask("PUT", "/api/v1/baselines/main/a", {"runs": [measured_run(0).to_dict()]})
    assert kept.status in (200, 201), kept.text
    return {
        "baseline": "main",
        "test": "a",
        "address": "2.member.1.0",
        "cluster": "c",
        "computation": "sample-comp",
        "block": "0",
        "report": str(reports[0]["id"]),
        "share": reports[1]["url"].rpartition("/")[2],
        "fingerprint": errors[0]["fingerprint"],
        "token": "1",
        "user": "local",
        "session": "0" * 16,
    }


def operations(document: dict[str, Any], values: dict[str, str], url: str) -> Iterator[Any]:
    import schemathesis

    document = copy.deepcopy(document)
    for path, item in document["paths"].items():
        for operation in item.values():
            # Every request has the secret; otherwise the fuzzer would leave it out now and then.
            operation.pop("security", None)
            for parameter in operation["parameters"]:
                if parameter["in"] == "path":
                    parameter["schema"] = {
                        "anyOf": [{"enum": [values[parameter["name"]]]}, {"type": "string", "minLength": 1}]
                    }
        if path == "/api/v1/ingest":
            # Binary bodies are tested in tests/integration/test_server_ingest.py.
            item.clear()
    schema = schemathesis.openapi.from_dict(document)
    schema.config.update(base_url=url)
    for found in schema.get_all_operations():
        operation = found.ok()  # type: ignore[union-attr]
        if operation.path != "/api/v1/live":
            yield operation


def fuzz_operations(server: HostedServer, document: dict[str, Any], mode: str, part: int) -> None:
    """Send requests to every route of a part."""
    from schemathesis import GenerationMode

    asked = 0
    quick = hypothesis.settings(
        max_examples=EXAMPLES, deadline=None, database=None, derandomize=True, phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )  # fmt: skip
    for operation in [*operations(document, known_values(server), server.url)][part::PARTS]:

        @quick
        @given(case=operation.as_strategy(generation_mode=GenerationMode(mode)))
        def ask(case: Any) -> None:
            nonlocal asked
            asked += 1
            response = case.call(headers={"Authorization": f"Bearer {server.secret}"}, timeout=60)
            assert response.status_code != 401 or "/session" in case.path, case.as_curl_command()
            assert response.status_code < 500, (case.as_curl_command(), response.text[:300])

        try:
            ask()
        except hypothesis.errors.Unsatisfiable:
            # A request without parameters cannot be invalid.
            pass
    assert asked > 100 / PARTS


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.each_database
def test_no_valid_request_makes_the_server_fail(server: HostedServer, document: dict[str, Any], part: int) -> None:
    fuzz_operations(server, document, "positive", part)


@pytest.mark.parametrize("part", range(PARTS))
def test_no_invalid_request_makes_the_server_fail(server: HostedServer, document: dict[str, Any], part: int) -> None:
    """Most are refused before the database is queried."""
    fuzz_operations(server, document, "negative", part)
