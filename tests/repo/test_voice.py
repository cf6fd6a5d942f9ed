"""The texts people read are plain English: no phrases that have to be read twice, and one word for each thing."""

from __future__ import annotations

import argparse
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from daskscope.cli.main import build_parser

ROOT = Path(__file__).parent.parent.parent
#: Phrases that were common here, each with the plain way to say it.
PHRASES = {
    r"\bwhoever\b": "anyone who, the user",
    r"\bof ours\b": "our, or the name of the part",
    r"(?<!there )\b(is|are) none\b": "there is no …, has no …",
    r"\bany more\b": "no longer",
    r"\bfor ever\b": "forever, never expires",
    r"\bmend(s|ed|ing)?\b": "repair",
    r"\bwithout a word\b": "without a goodbye, unexpectedly",
    r"\bwhat is known of\b": "evidence, details",
    r"\bwhere there is none\b": "if there is none",
    r"\bnobody (knows|waits|asks|names|listens)\b": "name the thing that is missing",
    r"\bsays nothing of\b": "omits",
    r"\bst(and|ood|ands|anding) idle\b": "idle",
    r"\btold of\b": "reported",
    r"\bkinds? of failures?\b": "error group",
    r"\bin our words\b": "public message",
    r"\bsign of life\b": "last seen",
    r"\breturn what\b": "return the …: name the thing",
    r"\b(that|those) of\b": "name the noun again, or use another verb",
    r"\b(each|one|all|those|texts|rows|bytes|files) of some\b": "of the given …",
}
WORST = re.compile("|".join(PHRASES), re.IGNORECASE)


def found(texts: Iterator[tuple[str, str]]) -> list[str]:
    return [f"{where}: “{match[0]}” in: {text[:120]}" for where, text in texts if (match := WORST.search(text))]


def python_texts() -> Iterator[tuple[str, str]]:
    """Yield every docstring, message and comment of the package.

    Tokens, not the syntax tree: on CPython 3.11, ``ast.parse`` fails if another thread parses at the same time (gh-106905).
    """
    for path in sorted(ROOT.glob("src/daskscope/**/*.py")):
        name, text, began = path.relative_to(ROOT), "", 0
        for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
            kind = tokenize.tok_name[token.type]
            if kind == "COMMENT":
                yield f"{name}:{token.start[0]}", token.string
            elif kind in ("STRING", "FSTRING_MIDDLE"):
                # Adjacent strings are one text.
                text, began = text + token.string.lstrip("rbfu").strip("\"'"), began or token.start[0]
            elif text and kind != "NL" and not kind.startswith("FSTRING"):
                yield f"{name}:{began}", " ".join(text.split())
                text, began = "", 0


def web_texts() -> Iterator[tuple[str, str]]:
    for path in sorted([*ROOT.glob("web/src/**/*.ts"), *ROOT.glob("web/src/**/*.tsx")]):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            yield f"{path.relative_to(ROOT)}:{number}", line


def pages() -> Iterator[tuple[str, str]]:
    for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            yield f"{path.relative_to(ROOT)}:{number}", line


def help_texts(parser: argparse.ArgumentParser | None = None) -> Iterator[tuple[str, str]]:
    """Yield the description of every command and the help of every option."""
    parser = parser or build_parser()
    yield parser.prog, parser.description or ""
    for action in parser._actions:
        yield f"{parser.prog} {action.dest}", str(action.help or "")
        if isinstance(action, argparse._SubParsersAction):
            for choice in action.choices.values():
                yield from help_texts(choice)


def test_the_command_line_is_plain_english() -> None:
    assert found(help_texts()) == []


def test_the_docs_are_plain_english() -> None:
    assert found(pages()) == []


def test_the_pages_are_plain_english() -> None:
    assert found(web_texts()) == []


def test_the_package_is_plain_english() -> None:
    assert found(python_texts()) == []


@pytest.mark.parametrize(
    "text",
    [
        "Whoever has the link sees it.",
        "It costs nothing any more.",
        "Mend what can be mended.",
        "Return what is new.",
        "Return the texts of some rows.",
        "The time is that of the server.",
    ],
)
def test_a_phrase_of_the_list_is_found(text: str) -> None:
    assert len(found(iter([("here", text)]))) == 1


@pytest.mark.parametrize(
    "text", ["Closed 1 minute ago. It no longer costs anything.", "Nothing failed.", "recommended"]
)
def test_plain_english_is_not(text: str) -> None:
    assert found(iter([("here", text)])) == []
