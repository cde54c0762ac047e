"""Command-line parsers of the programs, which reject conflicting repetitions of an option."""

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


def new_parser(prog: str, description: str, epilog: str, *, allow_abbrev: bool = False) -> argparse.ArgumentParser:
    """Return a parser whose help ends with ``epilog`` as written, and whose default action is :class:`Once`."""
    parser = argparse.ArgumentParser(
        prog=prog,
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=allow_abbrev,
    )
    parser.register("action", None, Once)
    return parser
