"""The public path of :mod:`cute_dialect.lang.lib.pipeline`."""

from cute_dialect.lang.lib.pipeline import *  # noqa: F403
from cute_dialect.lang.lib.pipeline import __dir__ as __dir__
