"""The secret of a server without sign-in, and what a browser gets for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from daskscope.server.services import LocalSecret, load_secret
from daskscope.server.settings import SettingsError


def test_a_new_secret_is_long_private_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "local.secret"
    secret = load_secret(path)
    assert len(secret.value) == 43
    assert path.stat().st_mode & 0o777 == 0o600
    assert load_secret(path) == secret
    assert [file.name for file in tmp_path.iterdir()] == ["local.secret"]
    assert load_secret(tmp_path / "other.secret") != secret


@pytest.mark.parametrize("text", ["", "\n", "short", "a secret with spaces in it, and long", "ä" * 43])
def test_a_file_without_a_secret_says_what_to_do(tmp_path: Path, text: str) -> None:
    path = tmp_path / "local.secret"
    path.write_text(text)
    with pytest.raises(SettingsError, match=r"local\.secret contains no secret\. Delete it"):
        load_secret(path)


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        load_secret(tmp_path)


def test_cookie_and_page_secret_differ_and_do_not_contain_the_secret() -> None:
    secret = LocalSecret("s" * 43)
    values = {secret.value, secret.cookie, secret.page, LocalSecret("t" * 43).cookie, LocalSecret("t" * 43).page}
    assert len(values) == 5
    assert "sss" not in secret.cookie + secret.page + repr(secret)


@pytest.mark.parametrize("given", ["", "s", "s" * 42, "s" * 44, "ß" * 43, "\ud800"])
def test_any_other_value_is_wrong(given: str) -> None:
    secret = LocalSecret("s" * 43)
    assert secret.is_value("s" * 43)
    assert secret.is_cookie(secret.cookie)
    assert not secret.is_value(given)
    assert not secret.is_cookie(given)
