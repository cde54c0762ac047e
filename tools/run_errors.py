"""What goes wrong in ``cute-run``."""


class RunError(Exception):
    """What a user did wrong, as one message."""
