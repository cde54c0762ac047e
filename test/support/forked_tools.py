"""A lit format that runs the project's tools in forks of lit's worker process.

Starting Python and importing xDSL takes 0.4 s, several times as long as most RUN lines.  Each lit worker therefore
imports the tools once and forks for every ``cute-opt``, ``cute-run`` or ``%python FILE`` of a RUN line.  A fork has its
own standard streams, working directory, environment and exit status, so pipes, redirections and ``not`` work as
usual.  All other programs are started as usual.
"""

from __future__ import annotations

import importlib
import os
import runpy
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn
from unittest import mock

import lit.formats
import lit.TestRunner

__all__ = ["ForkedTools", "preload"]

TOOLS = ("cute_opt", "cute_run")
"""Modules of ``cute_dialect.tools`` that run in a fork."""
_LIT = os.path.dirname(lit.TestRunner.__file__)
"""lit's own commands, such as ``diff``, need a separate Python process because they change ``sys.path``."""

_SAMPLE = """
import os, sys
before = set(sys.modules)
import cute_dialect.lang
from cute_dialect.tools.cute_opt import main
main([sys.argv[1], "--pipeline", "-o", os.devnull])
print(*(n for n in sys.modules if n not in before and n.split(".")[0] in ("cute_dialect", "xdsl", "numpy")))
"""


def preload(sample: str) -> None:
    """Import the modules that ``cute-opt`` imports when it compiles the file ``sample``.

    A separate process determines the list of modules, so that this process imports them without any other state.
    """
    done = subprocess.run([sys.executable, "-c", _SAMPLE, sample], capture_output=True, text=True, check=False)
    for name in done.stdout.split():
        importlib.import_module(name)


class ForkedTools(lit.formats.ShTest):
    """``ShTest`` with lit's internal shell, whose tools are forks."""

    def __init__(self) -> None:
        super().__init__(execute_external=False)

    def execute(self, test: Any, lit_config: Any) -> Any:
        with mock.patch.object(lit.TestRunner.subprocess, "Popen", _Popen):
            return super().execute(test, lit_config)


class _Popen(subprocess.Popen[str]):
    """A process. For a tool or a Python file, the fork runs it without executing Python again."""

    def __init__(self, args: Sequence[str], **options: Any) -> None:
        main = _main_of(args)
        if main is not None:
            environment = options.get("env") or dict(os.environ)
            options["preexec_fn"] = lambda: _run(main, environment)
        super().__init__(args, **options)


def _main_of(args: Sequence[str]) -> Callable[[], object] | None:
    """Return the main function of a tool or a Python file, or None for another program."""
    if not hasattr(os, "fork") or len(args) < 2 or args[0] != sys.executable:
        return None
    if args[1] == "-m" and len(args) > 2 and args[2].removeprefix("cute_dialect.tools.") in TOOLS:
        return lambda: _run_tool(args[2], args[3:])
    if args[1].endswith(".py") and not args[1].startswith(_LIT):
        return lambda: _run_file(args[1], args[2:])
    return None


def _run_tool(name: str, arguments: Sequence[str]) -> object:
    sys.argv = [name, *arguments]
    return importlib.import_module(name).main()


def _run_file(path: str, arguments: Sequence[str]) -> None:
    sys.argv = [path, *arguments]
    sys.path.insert(0, os.path.dirname(path))
    runpy.run_path(path, run_name="__main__")


def _run(main: Callable[[], object], environment: dict[str, str]) -> NoReturn:
    """Run the tool in the child process, whose standard streams and working directory are already set."""
    status: object = 1
    try:
        os.closerange(3, 1024)  # The parent waits until the pipe that reports a failed exec is closed.
        os.environ.clear()
        os.environ.update(environment)
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", closefd=False, buffering=1, errors="backslashreplace")  # noqa: SIM115
        status = main()
    except SystemExit as e:
        status = e.code
        if isinstance(status, str):
            print(status, file=sys.stderr)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                status = status or 1
        os._exit(status if isinstance(status, int) else int(status is not None))
