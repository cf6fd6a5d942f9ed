"""Hostile rows of every table are accepted or refused, and no request for them makes the server fail."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.helpers.hosted import HostedServer
from tests.helpers.services import Hosting

from daskscope.model.tables import TABLES
from daskscope.testing import make_frames

pytestmark = pytest.mark.each_database

#: The live view reads rows of the last minutes only.
NOW = time.time_ns() // 1000
INTEGERS = (
    NOW,
    NOW - 1_000_000,
    0,
    1,
    -1,
    1 << 53,
    1 << 62,
    (1 << 63) - 1,
    -(1 << 63),
    1_700_000_000_000_000,
    1 << 31,
    86_400_000_000,
)
FLOATS = (0.0, -1.0, 1e308, float("nan"), float("inf"), -float("inf"), 5e-324)
TEXTS = (
    "", "x", "\x00", "\ud800", "a/b", "../..", "ü" * 300, "{}", "[]", '{"wanted": 1e400}', '{"a": {"core_hour": NaN}}', "running",
    "error", "erred", "done", "(other)", "null", '{"packages": [1]}', "\n", "%2F", '{"core_hour": 1e308, "gib_hour": -1}', "report",
    "wanted-workers", "😀", '{"wanted": 99999999999999999999999}', '{"compute": Infinity}', '{"erred": "many", "memory": 1e999}',
)  # fmt: skip
PAGES = (
    "", "/explain", "/history", "/events", "/tasks", "/recording", "/document/report.json", "/computations/comp",
    "/computations/comp/document/report.json", "/increments", "/increments?computation=comp", "/progress", "/running", "/stacks",
)  # fmt: skip
LISTS = (
    "clusters?busy=true", "usage", "usage?by=user", "usage?by=cluster", "usage?by=prefix", "overview", "errors?search=x",
    "exceptions", "computations", "reports",
)  # fmt: skip


@pytest.fixture(scope="module")
def server(hosted_once: Hosting, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostedServer]:
    with hosted_once(tmp_path_factory.mktemp("hostile")) as server:
        yield server


def value(chance: random.Random, kind: str) -> Any:
    if kind.endswith("[]"):
        return [value(chance, kind[:-2]) for _ in range(chance.randrange(3))]
    return chance.choice({"str": TEXTS, "float": FLOATS}.get(kind, INTEGERS))


def tables(chance: random.Random, cluster: str) -> dict[str, list[dict[str, Any]]]:
    made: dict[str, list[dict[str, Any]]] = {}
    for name, definition in TABLES.items():
        made[name] = [
            {column.name: value(chance, column.kind) for column in definition.columns}
            for _ in range(chance.randrange(1, 5))
        ]
        for row in made[name]:
            if "computation" in row and chance.random() < 0.6:
                row["computation"] = "comp"
            if name == "clusters":
                row["cluster"] = cluster
    return made


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@pytest.mark.parametrize("seed", range(12))
def test_no_page_of_a_hostile_cluster_makes_the_server_fail(server: HostedServer, seed: int) -> None:
    cluster = f"c{seed}"
    frames = make_frames(tables(random.Random(seed), cluster), cluster=cluster)
    statuses = {f"frame {number}": server.send(frame).status for number, frame in enumerate(frames)}
    answers = {page: server.ask("GET", f"/api/v1/clusters/{cluster}{page}") for page in PAGES}
    answers |= {page: server.ask("GET", f"/api/v1/{page}") for page in LISTS}
    if answers["/recording"].status == 200:
        answers["upload"] = server.ask("POST", "/api/v1/reports", answers["/recording"].body)
    statuses |= {page: answer.status for page, answer in answers.items()}
    assert {page: status for page, status in statuses.items() if status >= 500} == {}


def test_some_hostile_rows_are_accepted(server: HostedServer) -> None:
    """Otherwise the test above would check nothing."""
    assert len(server.ask("GET", "/api/v1/clusters?since=all").json()["items"]) >= 10
    assert len(server.ask("GET", "/api/v1/reports").json()["items"]) >= 5
