"""The public path of :mod:`cute_dialect.lang.lib.schedulers`."""

from cute_dialect.lang.lib.schedulers import *  # noqa: F403
from cute_dialect.lang.lib.schedulers import __dir__ as __dir__
