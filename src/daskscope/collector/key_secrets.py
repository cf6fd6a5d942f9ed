"""Mask secrets in the keys of a batch of executions, at the cost of a look at most keys.

Scrubbing a key takes 10 to 20 µs, as much as everything else that happens to a task. Two shortcuts avoid it: most batches contain
no hint of a secret at all, and keys of one function differ in a token only, so one of them is scrubbed for all. Batches of keys
that Dask named, which is most of them, are looked at as a whole: 0.3 µs a key instead of 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .aliases import without_token
from .privacy import Scrubber


def scrub_keys(scrubber: Scrubber, keys: Sequence[Any]) -> list[Any]:
    """Return the keys; those with a secret as text in which it is masked."""
    heads_of_all = _heads(keys)
    if heads_of_all is not None and scrubber.is_clean("-\n".join(heads_of_all) + "-"):
        return list(keys)
    #: By the beginning of a key, without its token: a key that begins like that.
    examples: dict[str, Any] = {}
    heads: list[str] = []
    for key in keys:
        text = _relevant_text(key)
        head = without_token(text) or text
        heads.append(head)
        if head not in examples:
            examples[head] = text
    # A token begins with a hyphen, which a hint may need.
    if scrubber.is_clean("-\n".join(examples) + "-"):
        return list(keys)
    has_secret = {head for head, text in examples.items() if scrubber.scrub(text) != text}
    return [scrubber.scrub(str(key)) if head in has_secret else key for key, head in zip(keys, heads)]


def _relevant_text(key: Any) -> str:
    if type(key) is str:
        return key
    if type(key) is tuple and key and type(key[0]) is str and all(type(part) is int for part in key[1:]):
        return key[0]
    return str(key)


#: Characters of Dask's tokens, and how many a token has.
_HEX, _TOKEN = "0123456789abcdef", 32


def _heads(keys: Sequence[Any]) -> set[str] | None:
    """Return the keys without their tokens and numbers if Dask named all of them, else None."""
    texts = [key for key in keys if type(key) is str]
    tuples = [key for key in keys if type(key) is tuple]
    if len(texts) + len(tuples) != len(keys) or () in tuples:
        return None
    if {type(part) for key in tuples for part in key[1:]} - {int}:
        return None
    # The names of collections in tuples end with a token, too, but repeat.
    heads = {key[0] for key in tuples}
    if not all(type(head) is str for head in heads):
        return None
    if texts:
        starts, _, tokens = zip(*[key.rpartition("-") for key in texts])
        # Checked for all of them at once: strip removes every character of a token.
        if set(map(len, tokens)) != {_TOKEN} or "".join(tokens).strip(_HEX):
            return None
        heads.update(starts)
    return heads
