"""No secret leaves the process."""

from __future__ import annotations

import pytest

from daskscope.collector.privacy import Scrubber, bounded


def test_values_of_secret_environment_variables_are_masked() -> None:
    scrubber = Scrubber.gather({"MY_API_TOKEN": "hunter2hunter2"}, {})
    assert scrubber.scrub("failed with hunter2hunter2!") == "failed with ***!"


def test_values_of_secret_dask_settings_are_masked_at_any_depth() -> None:
    scrubber = Scrubber.gather({}, {"gateway": {"auth": {"kwargs": [{"password": "s3cr3t-value"}]}}})
    assert scrubber.scrub("tried s3cr3t-value") == "tried ***"


def test_ordinary_variables_are_not_masked() -> None:
    scrubber = Scrubber.gather({"HOME": "/home/someone", "AUTHOR_NAME": "Someone Else"}, {})
    assert scrubber.scrub("in /home/someone by Someone Else") == "in /home/someone by Someone Else"


@pytest.mark.parametrize("value", ["true", "None", "abc", "default", "      "])
def test_short_and_common_values_are_not_masked(value: str) -> None:
    scrubber = Scrubber.gather({"USE_TOKEN": value}, {})
    assert scrubber.scrub(f"it is {value} here") == f"it is {value} here"


def test_the_longer_of_two_secrets_is_masked_whole() -> None:
    scrubber = Scrubber.gather({"A_SECRET": "abcdef", "B_SECRET": "abcdefghij"}, {})
    assert scrubber.scrub("abcdefghij") == "***"


def test_a_secret_with_special_characters_is_taken_literally() -> None:
    scrubber = Scrubber.gather({"DB_PASSWORD": "a+b (c) #d|*"}, {})
    assert scrubber.scrub("got a+b (c) #d|*.") == "got ***."


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Authorization: Bearer abcdef123456", "abcdef123456"),
        ("Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
        ("curl -H 'authorization: bearer abc.def-ghi'", "abc.def-ghi"),
        ("connect(password='open sesame', user='x')", "sesame"),
        ('{"db_password": "open sesame"}', "sesame"),
        ("{\\'api_key\\': \\'abc123\\'}", "abc123"),
        ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG", "wJalr"),
        ("password = 'cut off in the middl", "middl"),
        ("key AKIAIOSFODNN7EXAMPLE here", "AKIAIOSFODNN7EXAMPLE"),
        ("postgresql://ann:pa55@db.example.com/x", "pa55"),
        ("redis://:pa55@cache:6379", "pa55"),
        ("jwt eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJ", "SflKxwRJ"),
        ("ghp_abcdefghijklmnopqrstuvwxyz0123456789", "abcdefghij"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----", "MIIE"),
        ("-----BEGIN PRIVATE KEY-----\nMIIE never ends", "MIIE"),
    ],
)
def test_text_that_looks_like_a_secret_is_masked(text: str, secret: str) -> None:
    scrubbed = Scrubber().scrub(text)
    assert secret not in scrubbed
    assert "***" in scrubbed


@pytest.mark.parametrize(
    "text",
    [
        "",
        "unexpected token 'x' at line 3",
        "authors: Ann, Bob",
        "max_tokens=5",
        "token=None",
        "see https://example.com/a:b@c",
        "KeyError: 'x'",
    ],
)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert Scrubber().scrub(text) == text


def test_the_name_of_a_masked_value_stays_readable() -> None:
    assert Scrubber().scrub("password=abc next") == "password=*** next"


@pytest.mark.parametrize(
    "piece", ["eyJ-", "://a:", "password", "'", "-----BEGIN PRIVATE KEY-----", "token= ", "a", "bearer "]
)
def test_scrubbing_is_linear(piece: str) -> None:
    # Quadratic work over half a million characters would run into the test's time limit by far.
    text = piece * (500_000 // len(piece))
    assert Scrubber(["secret-value"]).scrub(text) is not None


def test_short_text_is_not_cut() -> None:
    assert bounded("abc", 3) == "abc"


def test_long_text_keeps_head_and_tail_and_says_how_much_is_missing() -> None:
    text = bounded("a" * 500 + "z" * 500, 100)
    assert len(text) <= 100
    assert text.startswith("aaa")
    assert text.endswith("zzz")
    kept = text.count("a", 0, 40) + text.count("z")
    assert f"{1000 - kept} characters cut" in text


def test_a_limit_smaller_than_the_marker_is_kept() -> None:
    assert len(bounded("a" * 100, 5)) == 5
