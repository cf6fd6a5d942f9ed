"""Run a server with accounts and a token per cluster, on SQLite or PostgreSQL, and read the CPU time of both."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg

from benchmarks.cpu_limit import limited
from benchmarks.ingest import START
from daskscope.server.services import open_services
from daskscope.server.settings import Settings
from daskscope.storage.people.accounts import create_account, set_member
from daskscope.storage.people.tokens import create_token
from daskscope.storage.people.users import open_user

#: An account may add 600 clusters a minute.
ACCOUNTS = 10
#: Connections to the servers stay open, and requests go to the one with the fewest.
PROXY = """
daemon off;
worker_processes 1;
pid {directory}/nginx.pid;
events {{ worker_connections 16384; }}
http {{
    access_log off;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    client_max_body_size 200m;
    client_body_buffer_size 1m;
    upstream servers {{ least_conn; {servers} keepalive 64; }}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://servers;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_set_header Host $http_host;
        }}
    }}
}}
"""


@dataclass(frozen=True)
class Server:
    """A running server with sign-in, and the secrets of its tokens."""

    port: int
    secrets: list[str]
    processes: list[psutil.Process]
    #: PostgreSQL's first process; None for SQLite.
    database: psutil.Process | None

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def cpu_s(self) -> tuple[float, float]:
        """Return the CPU time of the server and of the database so far, in seconds."""
        return sum(map(_cpu_s, self.processes)), _cpu_s(self.database) if self.database is not None else 0.0


def _cpu_s(process: psutil.Process) -> float:
    """Return the CPU time of a process and its children, also those that have ended."""
    total = 0.0
    for one in (process, *process.children(recursive=True)):
        try:
            times = one.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def cluster_name(number: int) -> str:
    """Return the cluster that a token can write to."""
    return f"cluster-{number}"


@contextmanager
def serve_accounts(
    directory: Path, url: str, tokens: int, replicas: int = 1, prefix: str = "account", cores: float | None = None
) -> Iterator[Server]:
    """Yield a server on a new data directory, and on the PostgreSQL at ``url`` if there is one.

    With several replicas, the port is that of a proxy (nginx) which distributes the requests over them. With ``cores``, each
    replica and its processes get this many at most.
    """
    data = str(directory / "data")
    services = open_services(Settings(port=0, data=data, login=True, database=url).checked())
    try:
        with services.archive.write() as tx:
            user = open_user(tx, "olga", admin=False)
            accounts = [create_account(tx, f"{prefix}-{number}").id for number in range(ACCOUNTS)]
            for account in accounts:
                set_member(tx, account, user.id, "owner")
            scopes = frozenset({"ingest"})
            secrets = [
                create_token(
                    tx, account=accounts[number % ACCOUNTS], user=user.id, scopes=scopes, cluster=cluster_name(number)
                )[1]
                for number in range(tokens)
            ]
    finally:
        services.close()
    command = [sys.executable, "-c", START, "serve", "--login", "--port", "0", "--data", data]
    command += ["--database", url] if url else []
    processes: list[subprocess.Popen[str]] = []
    with ExitStack() as stack:
        for _ in range(replicas):
            start = stack.enter_context(limited(cores)) if cores else []
            process = subprocess.Popen([*start, *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            stack.callback(process.wait, 30)
            stack.callback(process.terminate)
            processes.append(process)
        ports = [_port_of(process) for process in processes]
        port = ports[0] if replicas == 1 else stack.enter_context(_proxy(directory, ports))
        servers = [psutil.Process(process.pid) for process in processes]
        yield Server(port, secrets, servers, _postmaster(url) if url else None)


def _port_of(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    return int(process.stdout.readline().strip().rpartition(":")[2])


@contextmanager
def _proxy(directory: Path, ports: list[int]) -> Iterator[int]:
    """Yield the port of an nginx in front of servers on these ports."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    file = directory / "nginx.conf"
    servers = " ".join(f"server 127.0.0.1:{one};" for one in ports)
    file.write_text(PROXY.format(directory=directory, servers=servers, port=port))
    process = subprocess.Popen(["nginx", "-c", str(file), "-e", str(directory / "error.log")])
    try:
        yield port
    finally:
        process.terminate()
        process.wait(30)


def _postmaster(url: str) -> psutil.Process:
    """Return the first process of the PostgreSQL at ``url``, which runs on this machine."""
    with psycopg.connect(url) as connection:
        (directory,) = connection.execute("SELECT current_setting('data_directory')").fetchone() or ("",)
    return psutil.Process(int((Path(directory) / "postmaster.pid").read_text().splitlines()[0]))
