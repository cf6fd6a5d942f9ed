"""The server's settings: which source wins, and the errors for invalid ones."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from daskscope.cli.main import build_parser
from daskscope.server.settings import Settings, SettingsError, settings_of


def parsed(*arguments: str, **environment: str) -> Settings:
    flags = vars(build_parser().parse_args(["serve", *arguments]))
    return settings_of(flags, {f"DASKSCOPE_SERVER_{name.upper()}": text for name, text in environment.items()})


def test_a_flag_wins_over_the_environment_that_over_the_file_and_that_over_the_default(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("port = 1\nmax_body = 1\nlost_after = 1\n")
    found = parsed("--config", str(file), "--port", "3", port="2", max_body="2")
    assert (found.port, found.max_body, found.lost_after, found.compact_after) == (3, 2, 1, 120)


def test_the_file_can_be_named_in_the_environment(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text('login = true\nhost = "0.0.0.0"\n')
    found = parsed(config=str(tmp_path / "settings.toml"))
    assert (found.login, found.host) == (True, "0.0.0.0")


def test_a_flag_can_switch_off_what_the_environment_switched_on() -> None:
    assert parsed(login="yes").login is True
    assert parsed("--no-login", login="yes").login is False
    assert parsed(login="").login is False


def test_every_setting_can_be_given_in_every_way(tmp_path: Path) -> None:
    for item in fields(Settings):
        value: Any = {"bool": "true", "int": "7"}.get(str(item.type), "/x")
        if item.name in ("url", "content_url", "log_format"):
            value = {"url": "https://x", "content_url": "https://y", "log_format": "json"}[item.name]
        more = {
            "host": {"login": "true"}, "url": {"login": "true"}, "trusted_proxies": {"login": "true"},
            "hosts": {"login": "true", "url": "https://x"}, "content_url": {"login": "true", "url": "https://x"},
            "tls_cert": {"tls_key": "k"}, "tls_key": {"tls_cert": "c"},
        }.get(item.name, {})  # fmt: skip
        wanted = {"bool": True, "int": 7}.get(str(item.type), value)
        assert getattr(parsed(**{item.name: value}, **more), item.name) == wanted
        flag = f"--{item.name.replace('_', '-')}"
        assert getattr(parsed(*([flag] if item.type == "bool" else [flag, value]), **more), item.name) == wanted
        file = tmp_path / "settings.toml"
        file.write_text(f'{item.name} = "{value}"\n')
        assert getattr(parsed("--config", str(file), **more), item.name) == wanted


NAMED = ("--login", "--url", "https://scope.example", "--content-url")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--host", "0.0.0.0"], "can be reached from other machines, so people must log in: add --login"),
        (["--host", "127.0.0.2"], "add --login"),
        (["--port", "http"], "--port is a number, not 'http'"),
        (["--port", "-1"], "--port cannot be negative"),
        (["--tls-cert", "c"], "--tls-cert and --tls-key belong together"),
        (["--tls-key", "k"], "--tls-cert and --tls-key belong together"),
        (["--log-format", "xml"], "--log-format is text or json, not xml"),
        (["--login", "--url", "scope.example"], "--url starts with http:// or https://"),
        (
            ["--url", "https://scope.example"],
            "--url makes the server reachable by others, so people must sign in: add --login",
        ),
        (["--trusted-proxies", "10.0.0.1"], "--trusted-proxies makes the server reachable by others"),
        (["--login", "--hosts", "inner"], "--hosts needs --url"),
        (["--content-url", "https://content.example"], "--content-url needs --url"),
        ([*NAMED, "https://scope.example"], "--content-url needs another host name than --url and --hosts"),
        ([*NAMED, "https://SCOPE.example/"], "--content-url needs another host name"),
        ([*NAMED, "https://scope.example:8443"], "send the cookies of a host to all its ports"),
        ([*NAMED, "https://inner", "--hosts", "inner"], "--content-url needs another host name"),
        ([*NAMED, "http://content.example"], "--content-url starts with https:// like --url"),
        ([*NAMED, "https://content.example/x"], "--content-url is a URL without a path"),
        ([*NAMED, "content.example"], "--content-url is a URL without a path"),
        ([*NAMED, "https://a.example; script-src *"], "--content-url is a URL without a path"),
        (["--root-path", "dask"], "--root-path starts with a slash"),
        (["--config", "/nowhere/settings.toml"], "The settings file /nowhere/settings.toml cannot be read"),
    ],
    ids=str,
)
def test_an_invalid_setting_is_refused_with_advice(arguments: list[str], said: str) -> None:
    with pytest.raises(SettingsError) as error:
        parsed(*arguments)
    assert said in str(error.value)
    assert error.value.exit_code == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("prot = 1", "there is no setting 'prot'. The settings are host, port"),
        ("port = ", "is not valid TOML"),
        ("port = [1]", "--port is a number"),
        ('login = "perhaps"', "--login must be true or false, not 'perhaps'"),
        ("host = 5", "--host is a text, not 5"),
        ("port = 99999", "--port is at most 65535"),
        ("port = true", "--port is a number, not True"),
        ("port = 1.5", "--port is a number, not 1.5"),
    ],
    ids=str,
)
def test_an_invalid_file_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "settings.toml").write_text(text)
    with pytest.raises(SettingsError) as error:
        parsed("--config", str(tmp_path / "settings.toml"))
    assert said in str(error.value)


def test_trailing_slashes_of_addresses_do_not_matter() -> None:
    found = parsed("--login", "--url", "https://scope.example/", "--root-path", "/dask/")
    assert (found.url, found.root_path) == ("https://scope.example", "/dask")


@pytest.mark.parametrize(
    ("arguments", "warnings"),
    [
        ([], []),
        (["--login", "--host", "0.0.0.0"], ["without TLS", "any host name"]),
        (["--login", "--host", "0.0.0.0", "--url", "https://scope.example"], ["without TLS"]),
        (["--login", "--host", "0.0.0.0", "--tls-cert", "c", "--tls-key", "k"], ["any host name"]),
        (["--login", "--host", "0.0.0.0", "--trusted-proxies", "10.0.0.1", "--url", "https://scope.example"], []),
        (["--login", "--host", "127.0.0.1"], []),
    ],
    ids=str,
)
def test_plain_text_and_any_host_name_are_warned_of_beyond_this_machine(
    arguments: list[str], warnings: list[str]
) -> None:
    found = parsed(*arguments).warnings
    assert [expected in text for expected, text in zip(warnings, found, strict=True)] == [True] * len(warnings)


def test_requests_may_use_the_names_of_the_url_and_of_hosts() -> None:
    found = parsed("--login", "--url", "https://Scope.example:8443/dask", "--hosts", "inner.svc, 10.0.0.7")
    assert found.host_names == {"scope.example", "inner.svc", "10.0.0.7"}
    assert parsed("--login").host_names == frozenset()
