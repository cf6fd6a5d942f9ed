"""Generate load: fake clusters that send batches to a server as recorders do, in order, until acknowledged."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from daskscope.testing import make_columns
from daskscope.wire.encode import encode_body, seal

START_US = 1_700_000_000_000_000


def cluster_batches(cluster: str, batches: int, rows: int) -> Iterator[bytes]:
    """Yield the batches of a cluster that runs ``batches`` × ``rows`` tasks and closes."""
    first = make_columns("clusters", [{"cluster": cluster, "name": cluster, "seen_us": START_US, "start_us": START_US}])
    yield seal(encode_body("clusters", first), cluster=cluster, epoch=1, sequence=0, kept=1, dropped=0)
    for number in range(batches):
        begin = START_US + number * 1_000_000
        tasks = [
            {
                "id": number * rows + n,
                "key": f"work-{number}-{n}",
                "group": "work",
                "prefix": "work",
                "computation": "c1",
                "worker": "tcp://10.0.0.1:1",
                "status": "ok",
                "start_us": begin + 1000 * n,
                "stop_us": begin + 1000 * n + 500,
                "nbytes": 10,
            }
            for n in range(rows)
        ]
        body = encode_body("tasks", make_columns("tasks", tasks))
        kept = (number + 1) * rows
        yield seal(body, cluster=cluster, epoch=1, sequence=number + 1, kept=kept, dropped=0)
    end = START_US + batches * 1_000_000
    last = {
        "cluster": cluster,
        "name": cluster,
        "seen_us": end,
        "start_us": START_US,
        "end_us": end,
        "end_reason": "closed",
    }
    body = encode_body("clusters", make_columns("clusters", [last]))
    yield seal(body, cluster=cluster, epoch=1, sequence=batches + 1, kept=2, dropped=0)


@dataclass
class Load:
    """Several concurrent clusters; each is followed by a new one when it has ended, until ``stop``."""

    url: str
    clusters: int = 4
    batches: int = 12
    rows: int = 25
    token: str = ""
    #: Seconds between two batches of a cluster. Without, clusters keep a core busy.
    pause_s: float = 0.0
    #: Clusters of which all batches were acknowledged.
    ended: list[str] = field(default_factory=list)
    acknowledged: int = 0
    repeated: int = 0
    #: Responses that were neither an acknowledgement nor a request to retry.
    refused: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._run, args=(n,), daemon=True) for n in range(self.clusters)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self, timeout: float = 60.0) -> None:
        """Let every cluster send its remaining batches, then stop."""
        self._stop.set()
        deadline = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        assert not any(thread.is_alive() for thread in self._threads), "a cluster could not deliver its batches"

    @property
    def tasks(self) -> int:
        """Return the number of tasks of the clusters that ended."""
        return len(self.ended) * self.batches * self.rows

    def _run(self, number: int) -> None:
        round_ = 0
        while not self._stop.is_set():
            cluster = f"cluster-{number}-{round_}"
            for frame in cluster_batches(cluster, self.batches, self.rows):
                self._deliver(frame)
                time.sleep(self.pause_s)
            with self._lock:
                self.ended.append(cluster)
            round_ += 1

    def _deliver(self, frame: bytes) -> None:
        tries = 0
        while True:
            status = self._post(frame)
            tries += 1
            if status == 200:
                with self._lock:
                    self.acknowledged += 1
                    self.repeated += tries > 1
                return
            time.sleep(0.05)

    def _post(self, frame: bytes) -> int:
        parts = urlsplit(self.url)
        tx = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)
        try:
            headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
            tx.request("POST", "/api/v1/ingest", frame, headers)
            response = tx.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException):
            return 0
        finally:
            tx.close()
        if response.status not in (200, 429, 503):
            with self._lock:
                self.refused.append(f"{response.status} {json.loads(text)['error']['message']}")
        return response.status
