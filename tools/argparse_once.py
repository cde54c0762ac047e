"""An argparse action that rejects conflicting repetitions of an option.

``parser.register("action", None, Once)`` makes it the default action of all options that name no other action.
"""

from __future__ import annotations

import argparse


class Once(argparse.Action):
    """Store a value like the default action, but report an error if a different value follows.

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
        """Store the value; report an error if it differs from an earlier one."""
        given = f"_{self.dest}_given"
        before: object = getattr(namespace, given, values)
        if before != values:
            parser.error(f"{option_string} is given twice: '{before}' and '{values}'")
        setattr(namespace, given, values)
        setattr(namespace, self.dest, values)
