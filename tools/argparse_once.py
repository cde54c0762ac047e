"""An option of a program that may be given once: two values that differ are an error, not the last one.

``parser.register("action", None, Once)`` makes it what argparse does with every option that has no action of its own.
"""

from __future__ import annotations

import argparse

__all__ = ["Once"]


class Once(argparse.Action):
    """Store a value, as argparse does without an action, but refuse another one.

    >>> parser = argparse.ArgumentParser(exit_on_error=False)
    >>> parser.register("action", None, Once)
    >>> _ = parser.add_argument("--chip")
    >>> parser.parse_args(["--chip=sm_90", "--chip=sm_90"]).chip
    'sm_90'
    """

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        """Store the value, as often as the option is given."""
        given = f"_{self.dest}_given"
        before: object = getattr(namespace, given, values)
        if before != values:
            parser.error(f"{option_string} is given twice: '{before}' and '{values}'")
        setattr(namespace, given, values)
        setattr(namespace, self.dest, values)
