"""What a server does by itself: a large run is rendered before somebody asks for it."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.services import Hosting

from daskscope.server import jobs as jobs_module
from daskscope.server.jobs import Jobs
from daskscope.storage import schema
from daskscope.testing.factories import make_frames
from daskscope.testing.hosted import MovingClock
from daskscope.testing.samples import sample_tables


def test_a_large_run_that_is_over_is_rendered_ahead(
    hosted: Hosting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs_module, "RENDER_TASKS", 3)
    clock = MovingClock()
    with hosted(tmp_path, clock=clock) as server:
        assert server.send(b"".join(make_frames(sample_tables("large", ended=True), cluster="large"))).status == 200
        clock.move(seconds=300)

        Jobs(server.services).compact()

        with server.services.database.read() as connection:
            made = set(connection.execute(sa.select(schema.renderings.c.subject)).scalars())
        assert made == {"", "sample-comp"}
        before = server.services.counters.get("compactions")
        assert before == 1
        # Opened now, it is only read.
        answer = server.ask("GET", "/api/v1/clusters/large/view/report.json")
        assert answer.status == 200
        with server.services.database.read() as connection:
            again = connection.execute(sa.select(sa.func.count()).select_from(schema.renderings)).scalar_one()
        assert again == 2


def test_a_small_run_is_not(hosted: Hosting, tmp_path: Path) -> None:
    clock = MovingClock()
    with hosted(tmp_path, clock=clock) as server:
        assert server.send(b"".join(make_frames(sample_tables("small", ended=True), cluster="small"))).status == 200
        clock.move(seconds=300)

        Jobs(server.services).compact()

        with server.services.database.read() as connection:
            assert connection.execute(sa.select(sa.func.count()).select_from(schema.renderings)).scalar_one() == 0
            assert connection.execute(sa.select(sa.func.count()).select_from(schema.files)).scalar_one() > 0
