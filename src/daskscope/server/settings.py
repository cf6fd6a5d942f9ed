"""Every setting of the server, declared once: flag, environment variable, configuration file and docs page."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from daskscope.client.local_server import LOOPBACK, data_directory
from daskscope.errors import DaskscopeError

ENVIRONMENT = "DASKSCOPE_SERVER_"
MIB = 1024 * 1024


class Storage(msgspec.Struct, frozen=True):
    """How to reach the storage of the server."""

    database: str
    database_timeout: int
    store: str
    store_endpoint: str
    masters: list[bytes]


class SettingsError(DaskscopeError):
    """A setting is invalid."""

    exit_code = 2


def _setting(default: Any, meaning: str, metavar: str = "") -> Any:
    return field(default=default, metadata={"meaning": meaning, "metavar": metavar})


@dataclass(frozen=True)
class Settings:
    """The settings of a server."""

    host: str = _setting("127.0.0.1", "address to listen on; any address but 127.0.0.1 needs --login", "ADDRESS")
    port: int = _setting(8780, "port to listen on (0 = any free port)", "N")
    data: str = _setting(
        "", "directory for the database, rows and keys (default: the platform's data directory)", "DIR"
    )
    database: str = _setting("", "database: a SQLite file (default: in the data directory) or postgresql://…", "URL")
    database_connections: int = _setting(
        20, "maximum connections to PostgreSQL for requests and jobs; ingest and live pages use seven more", "N"
    )
    database_timeout: int = _setting(
        30,
        "cancel PostgreSQL statements after this many seconds (0 = never)",
        "SECONDS",
    )
    store: str = _setting(
        "", "store for rows and reports: a directory (default: in the data directory) or s3://bucket/prefix", "URL"
    )
    store_endpoint: str = _setting("", "endpoint of an S3-compatible store other than AWS", "URL")
    login: bool = _setting(
        default=False,
        meaning="require sign-in; without it, anyone with the printed URL, which contains a secret, can do everything",
    )
    url: str = _setting("", "public URL of the server, for links and origin checks", "URL")
    hosts: str = _setting("", "additional host names to accept besides --url (comma-separated)", "LIST")
    content_url: str = _setting(
        "", "second URL of the server, with another host name, that serves uploaded HTML and nothing else", "URL"
    )
    root_path: str = _setting("", "path under which a reverse proxy serves it", "PATH")
    trusted_proxies: str = _setting("", "addresses of reverse proxies whose X-Forwarded headers to trust", "LIST")
    tls_cert: str = _setting("", "TLS certificate file; the server then uses HTTPS", "FILE")
    tls_key: str = _setting("", "TLS key file", "FILE")
    key_file: str = _setting(
        "", "file with the master key that encrypts code and tracebacks (default: in the data directory)", "FILE"
    )
    key_command: str = _setting(
        "",
        "command that prints the master key in base64; the environment variable DASKSCOPE_SERVER_MASTER_KEY also works",
        "COMMAND",
    )
    max_body: int = _setting(2 * MIB, "maximum size of one request with recorded data, in bytes", "BYTES")
    max_report: int = _setting(200 * MIB, "maximum size of a report, in bytes", "BYTES")
    max_reports: int = _setting(
        50 * 1024 * MIB, "maximum size of all reports of an account, in bytes (0 = unlimited)", "BYTES"
    )
    max_storage: int = _setting(
        200 * 1024 * MIB, "maximum size of all recorded data of an account, in bytes (0 = unlimited)", "BYTES"
    )
    busy_account_percent: int = _setting(
        30,
        "CPU of one core that an account may use while others that need less are active, in percent (0 = unlimited)",
        "N",
    )
    build_memory: int = _setting(
        1792 * MIB,
        "memory for building documents at the same time, in bytes; further ones wait, and larger ones fail",
        "BYTES",
    )
    rows_per_minute: int = _setting(60_000_000, "maximum rows a token may send per minute (0 = unlimited)", "N")
    bytes_per_minute: int = _setting(2000 * MIB, "maximum bytes a token may send per minute (0 = unlimited)", "BYTES")
    keep_rows_days: int = _setting(90, "keep the rows of a run for this many days (0 = forever)", "N")
    keep_sums_days: int = _setting(730, "keep the totals of a run for this many days (0 = forever)", "N")
    keep_replaced_hours: int = _setting(
        48, "keep replaced files for this many hours; longer than the time between two backups", "N"
    )
    lost_after: int = _setting(60, "mark a silent cluster as lost after this many seconds", "SECONDS")
    compact_after: int = _setting(120, "compact a run to Parquet after this many seconds without new data", "SECONDS")
    security_contact: str = _setting(
        "", "e-mail address or URL for reports of vulnerabilities, in /.well-known/security.txt", "CONTACT"
    )
    log_format: str = _setting("text", "log format: text or json", "FORMAT")

    @property
    def is_loopback(self) -> bool:
        return self.host in LOOPBACK

    @property
    def directory(self) -> Path:
        return Path(self.data) if self.data else data_directory()

    @property
    def database_url(self) -> str:
        return self.database or str(self.directory / "catalog.db")

    @property
    def store_url(self) -> str:
        return self.store or str(self.directory / "blobs")

    @property
    def master_key_file(self) -> Path:
        return Path(self.key_file) if self.key_file else self.directory / "master.key"

    @property
    def local_secret_file(self) -> Path:
        return self.directory / "local.secret"

    @property
    def is_https(self) -> bool:
        """Return whether browsers reach the server by HTTPS."""
        return bool(self.tls_cert) or self.url.startswith("https://")

    @property
    def warnings(self) -> list[str]:
        """Return hints for the operator: settings to change."""
        if self.is_loopback:
            return []
        found = []
        if not (self.tls_cert or self.trusted_proxies):
            found.append(
                f"The server listens on {self.host} without TLS, so passwords, tokens and recordings cross the network in plain "
                "text. Set --tls-cert and --tls-key, or put it behind a proxy with TLS and set --trusted-proxies."
            )
        if not self.host_names:
            found.append(
                "The server answers requests for any host name, so a page of another site can reach it under a name of its own. "
                "Set --url to the address that people use."
            )
        return found

    @property
    def host_names(self) -> frozenset[str]:
        """Return the host names that requests may use; empty means any."""
        own = urlsplit(self.url).hostname if self.url else None
        return frozenset(name.strip().lower() for name in (own or "", *self.hosts.split(",")) if name.strip())

    @property
    def content_host(self) -> str:
        """Return the host name of the origin of uploaded HTML; empty if it has none."""
        return urlsplit(self.content_url).hostname or ""

    @property
    def page_origins(self) -> list[str]:
        """Return the origins of the app's pages; empty without --url."""
        own = urlsplit(self.url)
        port = f":{own.port}" if own.port else ""
        return [f"{own.scheme}://{name}{port}" for name in sorted(self.host_names)]

    @property
    def frame_source(self) -> str:
        """Return the origin of uploaded HTML, as a content security policy names it."""
        return self.content_url or "'self'"

    def checked(self) -> Settings:
        """Return these settings if they are consistent."""
        if not self.is_loopback and not self.login:
            raise SettingsError(
                f"--host {self.host} can be reached from other machines, so people must log in: add --login. "
                "Without it the server listens on loopback only."
            )
        for flag, value in (("--url", self.url), ("--trusted-proxies", self.trusted_proxies)):
            if value and not self.login:
                raise SettingsError(
                    f"{flag} makes the server reachable by others, so people must sign in: add --login, or leave {flag} out."
                )
        if self.port > 65_535:
            raise SettingsError(f"--port is at most 65535, not {self.port}.")
        if bool(self.tls_cert) != bool(self.tls_key):
            raise SettingsError("--tls-cert and --tls-key belong together: give both.")
        if self.log_format not in ("text", "json"):
            raise SettingsError(f"--log-format is text or json, not {self.log_format}.")
        if self.url and not self.url.startswith(("http://", "https://")):
            raise SettingsError(f"--url starts with http:// or https://, not {self.url!r}.")
        if self.database_connections < 1:
            raise SettingsError("--database-connections is at least 1.")
        if self.hosts and not self.url:
            raise SettingsError("--hosts needs --url: it adds host names to the one of the URL.")
        self._check_content_url()
        path = self.root_path.rstrip("/")
        if path and not path.startswith("/"):
            raise SettingsError(f"--root-path starts with a slash, not {self.root_path!r}.")
        return replace(self, root_path=path, url=self.url.rstrip("/"), content_url=self.content_url.rstrip("/"))

    def _check_content_url(self) -> None:
        if not self.content_url:
            return
        if not self.url:
            raise SettingsError("--content-url needs --url: pages of that URL show what the other one serves.")
        # A content security policy cannot name an IPv6 address.
        if not re.fullmatch(r"https?://[\w.-]+(:\d{1,5})?/?", self.content_url):
            raise SettingsError(
                f"--content-url is a URL without a path, such as https://content.example.org, not {self.content_url!r}."
            )
        if self.content_host in self.host_names:
            raise SettingsError(
                f"--content-url needs another host name than --url and --hosts, not {self.content_host}: uploaded HTML must "
                "not have the origin of the app, and browsers send the cookies of a host to all its ports."
            )
        if self.url.startswith("https://") and not self.content_url.startswith("https://"):
            raise SettingsError(
                "--content-url starts with https:// like --url: browsers show no http page in an https page."
            )


#: Settings of a server's storage.
STORAGE = ("data", "database", "store", "store_endpoint", "key_file", "key_command")


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add a flag for every setting. Flags that are not given are absent from the result."""
    _add_flags(parser, [item.name for item in fields(Settings)])


def add_storage_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of a command that works on a server's storage."""
    _add_flags(parser, STORAGE)


def _add_flags(parser: argparse.ArgumentParser, names: Sequence[str]) -> None:
    parser.add_argument("--config", metavar="FILE", help="TOML file with any of these settings")
    for item in (item for item in fields(Settings) if item.name in names):
        flag, text = f"--{item.name.replace('_', '-')}", item.metadata["meaning"]
        if item.type == "bool":
            parser.add_argument(flag, action=argparse.BooleanOptionalAction, default=None, help=text)
        else:
            metavar = item.metadata["metavar"]
            parser.add_argument(flag, metavar=metavar, default=None, help=f"{text}{_shown(item.default)}")


def _shown(default: Any) -> str:
    return f" (default: {default})" if default not in ("", False) else ""


def settings_of(flags: Mapping[str, Any], environment: Mapping[str, str]) -> Settings:
    """Return the settings. Flags override the environment, which overrides the file, which overrides the defaults."""
    config = flags.get("config") or environment.get(f"{ENVIRONMENT}CONFIG")
    values: dict[str, Any] = _file(Path(config)) if config else {}
    for item in fields(Settings):
        text = environment.get(ENVIRONMENT + item.name.upper())
        if text is not None:
            values[item.name] = text
        if flags.get(item.name) is not None:
            values[item.name] = flags[item.name]
    kinds = {item.name: item.type for item in fields(Settings)}
    return Settings(**{name: _converted(name, kinds[name], value) for name, value in values.items()}).checked()


def _file(path: Path) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        values: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise SettingsError(f"The settings file {path} is not valid TOML: it is not UTF-8.") from None
    except OSError as error:
        raise SettingsError(f"The settings file {path} cannot be read: {error.strerror}.") from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"The settings file {path} is not valid TOML: {error}.") from None
    known = [item.name for item in fields(Settings)]
    unknown = [name for name in values if name not in known]
    if unknown:
        raise SettingsError(f"{path}: there is no setting {unknown[0]!r}. The settings are {', '.join(known)}.")
    return values


def _converted(name: str, kind: Any, value: Any) -> Any:
    flag = f"--{name.replace('_', '-')}"
    if kind == "bool":
        if isinstance(value, bool):
            return value
        if str(value).lower() in ("1", "true", "yes", "on"):
            return True
        if str(value).lower() in ("0", "false", "no", "off", ""):
            return False
        raise SettingsError(f"{flag} must be true or false, not {value!r}.")
    if kind == "int":
        return _number(flag, value)
    if not isinstance(value, str):
        raise SettingsError(f"{flag} is a text, not {value!r}.")
    return value


def _number(flag: str, value: Any) -> int:
    try:
        number = int(value) if isinstance(value, str) or type(value) is int else None
    except ValueError:
        number = None
    if number is None:
        raise SettingsError(f"{flag} is a number, not {value!r}.")
    if number < 0:
        raise SettingsError(f"{flag} cannot be negative.")
    return number
