"""The public path of :mod:`cute_dialect.compat.extras`."""

from cute_dialect.compat.extras import *  # noqa: F403
