"""Every setting of the server, declared once: the flag, the environment variable, the line in the file and the docs page."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from daskscope.errors import DaskscopeError

ENVIRONMENT = "DASKSCOPE_SERVER_"
LOOPBACK = ("127.0.0.1", "::1", "localhost")
MIB = 1024 * 1024


class SettingsError(DaskscopeError):
    """A setting cannot be what it was set to."""

    exit_code = 2


def _setting(default: Any, meaning: str, metavar: str = "") -> Any:
    return field(default=default, metadata={"meaning": meaning, "metavar": metavar})


@dataclass(frozen=True)
class Settings:
    """How a server is run."""

    host: str = _setting("127.0.0.1", "address to listen on; anything but loopback needs login", "ADDRESS")
    port: int = _setting(8780, "port to listen on; 0 for a free one", "N")
    data: str = _setting("", "directory for the catalog, rows and keys (default: the platform's data directory)", "DIR")
    database: str = _setting("", "catalog: a SQLite file (default: in the data directory) or postgresql://…", "URL")
    store: str = _setting(
        "", "rows and reports: a directory (default: in the data directory) or s3://bucket/prefix", "URL"
    )
    store_endpoint: str = _setting("", "endpoint of an S3-compatible server that is not AWS", "URL")
    login: bool = _setting(
        default=False, meaning="ask for a login; without it whoever reaches the port is the only user"
    )
    url: str = _setting("", "address people reach the server under, for links and origin checks", "URL")
    root_path: str = _setting("", "path a reverse proxy serves it under", "PATH")
    trusted_proxies: str = _setting("", "addresses of reverse proxies whose forwarded headers are believed", "LIST")
    tls_cert: str = _setting("", "certificate file; serves HTTPS", "FILE")
    tls_key: str = _setting("", "key file of the certificate", "FILE")
    key_file: str = _setting("", "master key that seals code and tracebacks (default: in the data directory)", "FILE")
    max_body: int = _setting(2 * MIB, "largest body of recorded batches, in bytes", "BYTES")
    max_report: int = _setting(200 * MIB, "largest report that can be uploaded, in bytes", "BYTES")
    max_reports: int = _setting(50 * 1024 * MIB, "bytes of all reports of an account together; 0: no limit", "BYTES")
    rows_per_minute: int = _setting(60_000_000, "rows a token may send in a minute; 0: no limit", "N")
    bytes_per_minute: int = _setting(2000 * MIB, "bytes a token may send in a minute; 0: no limit", "BYTES")
    keep_rows_days: int = _setting(90, "days until a run's rows are deleted; 0: never", "N")
    keep_sums_days: int = _setting(730, "days until everything of a run is deleted; 0: never", "N")
    lost_after: int = _setting(60, "seconds without a sign of life until a cluster is called lost", "SECONDS")
    compact_after: int = _setting(120, "seconds without a batch until a run is compacted into Parquet", "SECONDS")
    log_format: str = _setting("text", "text or json", "FORMAT")

    @property
    def is_loopback(self) -> bool:
        return self.host in LOOPBACK

    @property
    def directory(self) -> Path:
        return Path(self.data) if self.data else default_directory()

    @property
    def database_url(self) -> str:
        return self.database or str(self.directory / "catalog.db")

    @property
    def store_url(self) -> str:
        return self.store or str(self.directory / "blobs")

    @property
    def master_key(self) -> Path:
        return Path(self.key_file) if self.key_file else self.directory / "master.key"

    def checked(self) -> Settings:
        """These settings, where they make sense together."""
        if not self.is_loopback and not self.login:
            raise SettingsError(
                f"--host {self.host} can be reached from other machines, so people must log in: add --login. "
                "Without it the server listens on loopback only."
            )
        if self.port > 65_535:
            raise SettingsError(f"--port is at most 65535, not {self.port}.")
        if bool(self.tls_cert) != bool(self.tls_key):
            raise SettingsError("--tls-cert and --tls-key belong together: give both.")
        if self.log_format not in ("text", "json"):
            raise SettingsError(f"--log-format is text or json, not {self.log_format}.")
        if self.url and not self.url.startswith(("http://", "https://")):
            raise SettingsError(f"--url starts with http:// or https://, not {self.url!r}.")
        path = self.root_path.rstrip("/")
        if path and not path.startswith("/"):
            raise SettingsError(f"--root-path starts with a slash, not {self.root_path!r}.")
        return replace(self, root_path=path, url=self.url.rstrip("/"))


def default_directory() -> Path:
    """Where the platform wants programs to keep their data."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "daskscope"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "daskscope"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "daskscope"


#: Settings that say where a server keeps what it has.
STORAGE = ("data", "database", "store", "store_endpoint", "key_file")


def add_flags(parser: argparse.ArgumentParser) -> None:
    """A flag for every setting; what is not given is not in the result."""
    _add_flags(parser, [item.name for item in fields(Settings)])


def add_storage_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of a command that works on a server's storage while the server may be away."""
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
    """The settings: a flag wins over the environment, that over the file, that over the default."""
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
        raise SettingsError(f"The settings file {path} is no TOML: it is not UTF-8.") from None
    except OSError as error:
        raise SettingsError(f"The settings file {path} cannot be read: {error.strerror}.") from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"The settings file {path} is no TOML: {error}.") from None
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
        raise SettingsError(f"{flag} is true or false, not {value!r}.")
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
