"""Answer requests of users for the current stacks: the agents push them, and a last row says how many did."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from ..delivery.poster import StackRequest
from ..guard import guarded, guarded_async

if TYPE_CHECKING:
    from .plugin import ClusterPlugin


class StackAnswers:
    """Answers each request once: replies of the server repeat it."""

    def __init__(self, plugin: ClusterPlugin) -> None:
        self.plugin = plugin
        self.guard = plugin.guard
        self._last = 0
        self._task: asyncio.Task[None] | None = None

    @guarded
    def answer(self, asked: StackRequest) -> None:
        """Begin to answer a request, on the event loop."""
        plugin = self.plugin
        is_mine = plugin.scheduler is not None and not plugin.is_closed and asked.cluster == plugin.outbox.cluster
        if is_mine and asked.request > self._last:
            self._last = asked.request
            self._task = asyncio.get_running_loop().create_task(self._answer(asked))

    @guarded_async
    async def _answer(self, asked: StackRequest) -> None:
        plugin = self.plugin
        if plugin.settings.profile:
            result = await plugin.agents.push_stacks(asked.request, asked.worker)
        else:
            result = {"workers": 0, "asked": 0, "answered": 0, "why": "profiles are switched off"}
        if not plugin.is_closed:
            now_us, note = plugin.recorder.now_us(), json.dumps(result)
            plugin.recorder.rows.add("stacks", time_us=now_us, request=asked.request, worker="scheduler", note=note)
            # A user waits for it.
            plugin.flush()
