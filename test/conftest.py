"""Tests compile anew: what a cache of the user holds must not hide an error."""

from __future__ import annotations

import os

os.environ["CUTE_CACHE"] = "0"
