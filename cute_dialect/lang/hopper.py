"""The public path of :mod:`cute_dialect.lang.lib.hopper`."""

from cute_dialect.lang.lib.hopper import *  # noqa: F403
from cute_dialect.lang.lib.hopper import __dir__ as __dir__
