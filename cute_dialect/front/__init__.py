"""The front-end: how Python functions become modules of cute IR; users import :mod:`cute_dialect.lang`."""
