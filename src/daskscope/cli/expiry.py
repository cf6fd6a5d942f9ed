"""Warn of a saved token that expires soon."""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone

from daskscope.cli.output import write_message
from daskscope.client import credentials
from daskscope.client.server import chosen_account, configured_url

#: As the server's lists: ``EXPIRES_SOON_US`` in ``storage.tokens``.
SOON = timedelta(days=14)


def warn_of_expiry(account: str) -> None:
    """Write one line if the saved token for the configured server expires within two weeks."""
    url = configured_url()
    if not url or os.environ.get(credentials.ENVIRONMENT):
        return
    used = credentials.find_credential(url, chosen_account(url, account))
    if used is None or not used.expires:
        return
    try:
        expires = datetime.fromisoformat(used.expires.replace("Z", "+00:00"))
    except ValueError:
        return
    left = expires - datetime.now(timezone.utc)
    if timedelta(0) < left <= SOON:
        command = f"daskscope login --server {used.server}"
        write_message(f"your token expires on {expires:%Y-%m-%d}. Renew it with: {command}")
