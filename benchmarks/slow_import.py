"""Takes 2 s to import, as large libraries do."""

from __future__ import annotations

import time

time.sleep(2.0)
