"""No secret leaves the process."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from tests.helpers.example_secrets import Example, examples

from daskscope.collector.privacy import Scrubber, bounded, scrub_keys
from daskscope.collector.secret_patterns import TOKENS


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
    # Quadratic work over half a million characters would exceed the test's time limit by far.
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


EXAMPLES = examples(1)


def test_there_are_sixty_examples() -> None:
    assert len({example.name for example in EXAMPLES}) == len(EXAMPLES) == 60


@pytest.mark.parametrize("example", EXAMPLES, ids=[example.name for example in EXAMPLES])
@pytest.mark.parametrize("frame", ["{}", "it's {} again", "load-{}", "({!r}, 0)", '"{}"', "x={}", "a/{}/b", "file\t{}"])
def test_every_sort_of_secret_is_masked(example: Example, frame: str) -> None:
    scrubbed = Scrubber().scrub(frame.format(example.text))
    assert example.secret not in scrubbed
    assert "***" in scrubbed
    # Scrubbing a scrubbed text must not destroy more: texts of workers are scrubbed on the scheduler again.
    assert Scrubber().scrub(scrubbed) == scrubbed


@pytest.mark.parametrize(
    "text",
    [
        "dask scheduler -p 8080 --dashboard-address :8787",
        "ssh -p 2222 host, mysql -p on port 3306",
        "docker run -u 1000:1000 image; docker run -p8080:80 image",
        "gcc -pthread -pedantic x.c; find . -path x -print; mkdir -p /tmp/x",
        "task-1 disk-read mask-8f14e45fceea167a5a36dedd4bea2543",
        "connect to tcp://10.0.0.1:8786 and http://host:8787/status, mail ann@example.com",
        "http://host:8787/a@b",
        "first pass: 12 rows, signal=9, compass=n",
        "key-1f0c7a25b9d3 and inc-8f14e45fceea167a5a36dedd4bea2543",
        "('read_parquet-fused-8f14e45fceea167a5a36dedd4bea2543', 17)",
        '  File "/home/ann/key_store/tokens.py", line 12, in load_keys\n    return tokens[key]',
        "monkey patch, author: Ann, 3 tokens, the token is missing",
        "<module 'secrets' from '/usr/lib/python3.11/secrets.py'>",
    ],
)
def test_text_like_a_secret_but_ordinary_stays(text: str) -> None:
    assert Scrubber().scrub(text) == text


ADVERSARIAL = [
    *TOKENS,
    *(
        "eyJ",
        "eyJaaaaaa.",
        "://",
        "://a:b/",
        "://a@",
        "jdbc:oracle:thin:a/",
        "jdbc:a:b:",
        "password",
        "password=",
        "password='",
    ),
    *(
        "'password','",
        "--password ",
        "--a-b-c-password ",
        "mysql ",
        "mysql -p",
        " -u a -p",
        "curl -u ",
        "curl ",
        "sshpass -p",
        "login ",
        "login -p ",
        "redis-cli -a ",
        "ldapsearch ",
        "zip -P ",
        " -pa",
        "pass: ",
    ),
    *(
        "<password>",
        "identified by '",
        "bearer ",
        "sig=",
        "pass=",
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN ",
        "\n",
        "a",
    ),
]


@pytest.mark.parametrize("piece", ADVERSARIAL)
def test_scrubbing_a_long_text_is_linear(piece: str) -> None:
    before = time.process_time()
    assert Scrubber(["secret-value"]).scrub(piece * (150_000 // len(piece))) is not None
    assert Scrubber(["secret-value"]).scrub(piece + "a" * 150_000) is not None
    # Linear work takes 0.03 s of CPU time, the simplest quadratic pattern 6 s.
    assert time.process_time() - before < 3


def test_a_long_ordinary_text_stays_as_it_is() -> None:
    text = "\n".join(
        f'  File "/lib/key_{n}.py", line {n}, in token_{n}\n    return self.auth[{n}]' for n in range(20_000)
    )
    assert Scrubber(["secret-value"]).scrub(text) == text


def test_a_known_secret_is_masked_in_a_url() -> None:
    assert Scrubber(["p@ss word/1"]).scrub("x?key=p%40ss%20word%2F1") == "x?key=***"


def test_json_stays_json() -> None:
    text = json.dumps({"token": "abc", "n": [{"password": 'say "x"'}, "password=abc"], "ghp_" + "a" * 36: 1})
    assert json.loads(Scrubber().scrub_json(text)) == {
        "token": "***",
        "n": [{"password": "***"}, "password=***"],
        "***": 1,
    }


def test_every_text_of_every_column_is_scrubbed() -> None:
    columns: dict[str, list[Any]] = {"a": ["password=abc", "x"], "b": [["password=abc"], ()], "c": [1, 2.5]}
    assert Scrubber().scrub_columns(columns) == {"a": ["password=***", "x"], "b": [["password=***"], []], "c": [1, 2.5]}


@pytest.mark.parametrize("example", EXAMPLES, ids=[example.name for example in EXAMPLES])
def test_secrets_in_keys_are_masked(example: Example) -> None:
    token = "8f14e45fceea167a5a36dedd4bea2543"
    keys = [
        f"inc-{token}",
        ("sum", 1),
        example.text,
        ("x", example.text),
        (example.text, 0),
        f"load-{example.text}-{token}",
        5,
    ]
    scrubbed = scrub_keys(Scrubber(), keys)
    assert scrubbed[:2] == keys[:2]
    assert scrubbed[-1] == 5
    assert example.secret not in str(scrubbed)


@pytest.mark.parametrize("example", EXAMPLES, ids=[example.name for example in EXAMPLES])
def test_secrets_are_masked_among_keys_that_dask_named(example: Example) -> None:
    """Such batches are looked at as a whole."""
    token = "8f14e45fceea167a5a36dedd4bea2543"
    named: list[Any] = [f"inc-{token}", (f"sum-{token}", 1, 2)]
    for key in (
        f"load-{example.text}-{token}",
        example.text,
        (f"{example.text}-{token}", 3),
        (example.text, 3),
        ("x", example.text),
    ):
        scrubbed = scrub_keys(Scrubber(), [*named, key])
        assert scrubbed[:2] == named
        assert example.secret not in str(scrubbed)


@pytest.mark.parametrize("last", [f"inc-{32 * 'a'}", 5, ("x", 1), ()], ids=str)
def test_keys_without_a_hint_of_a_secret_stay_the_same_objects(last: Any) -> None:
    keys = [*(("sum-8f14e45fceea167a5a36dedd4bea2543", number) for number in range(10)), last]
    assert all(one is two for one, two in zip(scrub_keys(Scrubber(), keys), keys, strict=True))


def test_remembered_names_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daskscope.collector.privacy.MAX_REMEMBERED", 3)
    scrubber = Scrubber()
    for _ in range(2):
        names = [scrubber.scrub_name(f"password={number} x{number}") for number in range(10)]
        assert names == [f"password=*** x{number}" for number in range(10)]
    assert len(scrubber._remembered) <= 3
