"""The public path of :mod:`cute_dialect.compat.testing`."""

from cute_dialect.compat.testing import *  # noqa: F403
from cute_dialect.compat.testing import __dir__ as __dir__
