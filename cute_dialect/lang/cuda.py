"""The public path of :mod:`cute_dialect.compat.cuda`."""

from cute_dialect.compat.cuda import *  # noqa: F403
from cute_dialect.compat.cuda import __dir__ as __dir__
