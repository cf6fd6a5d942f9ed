"""Record custom metrics."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import distributed

from daskscope.client.connection import find_client
from daskscope.collector.scheduler.recorder import METRIC_TOPIC


def log_metric(
    name: str,
    value: float,
    unit: str = "",
    *,
    client: distributed.Client | None = None,
    span: str = "",
    window: str = "",
    **labels: Any,
) -> Awaitable[None] | None:
    """Record ``value`` under ``name``, from a client or from inside a task. Does nothing if the cluster is not recorded.

    With an asynchronous client, await the result.
    """
    message = {"name": name, "value": float(value), "unit": unit, "labels": labels, "span": span, "window": window}
    if client is None:
        try:
            worker = distributed.get_worker()
        except ValueError:
            pass
        else:
            worker.log_event(METRIC_TOPIC, message)
            return None
    return find_client(client).log_event(METRIC_TOPIC, message)  # type: ignore[no-any-return]
