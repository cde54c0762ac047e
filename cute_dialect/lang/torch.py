"""The public path of :mod:`cute_dialect.compat.torch`."""

from cute_dialect.compat.torch import *  # noqa: F403
from cute_dialect.compat.torch import __dir__ as __dir__
