"""Options of a kernel call: validation of each keyword, with errors that name it.

Options are Python keywords and may have any type.  A string is therefore not accepted where a sequence of numbers is
required, and 1.5 is not accepted as a number of blocks.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, cast

from cute_dialect.runtime.host_program import Dim3
from cute_dialect.runtime.launch_plan import LaunchError
from cute_dialect.runtime.settings import word
from cute_dialect.runtime.turns import PREFIX, parse_turns

__all__ = ["Checks", "OptionError", "check_options", "device_number", "dim3", "index_of", "read_checks", "shared_bytes"]

CHECKS = ("race", "oob", "uninit", "sync", "strict")
"""Names of checks.  "strict" is "race" by the text of the PTX ISA; "all" stands for the others."""
REPORTS = ("banks", "coalescing", "occupancy", "timeline", "flops")
SCHEDULES = ("round-robin", "reverse", "random", "adversarial")
"""Names that the interpreter accepts; a test compares them with the interpreter's own."""

_ON_CPU: Mapping[str, object] = {
    "checks": None, "reports": (), "blocks": None, "schedule": "round-robin", "seed": 0, "progress": None,
    "unwritten": (), "field": None, "resident": None,
}  # fmt: skip
"""Options of the interpreter, with their defaults."""


class OptionError(LaunchError):
    """An option of a call has an invalid value.  The message names the option and the allowed values."""


def _wrong(name: str, what: str, got: object) -> OptionError:
    shown = repr(got)
    return OptionError(f"{name}: expected {what}, got {shown if len(shown) <= 80 else shown[:77] + '...'}")


def index_of(value: object) -> int | None:
    """Return an integer of Python or numpy as an ``int``; ``None`` for anything else, including bool.

    >>> index_of(3), index_of(True), index_of(3.0), index_of("3")
    (3, None, None, None)
    """
    if isinstance(value, bool) or type(value).__name__ == "bool":  # operator.index accepts numpy's bool
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def dim3(name: str, value: object) -> Dim3 | None:
    """Return the extents of a grid or a block, padded with 1 to three.  Raises :class:`OptionError`."""
    if value is None:
        return None
    what = "one to three positive integers like (8, 1, 1)"
    try:
        given = [] if isinstance(value, (str, bytes, Mapping, set)) else list(cast("Sequence[object]", value))
    except TypeError:
        given = []
    numbers = [index_of(v) for v in given]
    if not 1 <= len(numbers) <= 3 or any(n is None or n < (0 if name == "grid" else 1) for n in numbers):
        raise _wrong(name, what, cast(object, value))
    x, y, z = (*cast("list[int]", numbers), 1, 1)[:3]
    return x, y, z


def shared_bytes(value: object) -> int | None:
    """Return the dynamic shared memory in bytes.  Raises :class:`OptionError`."""
    if value is None:
        return None
    number = index_of(value)
    if number is None or not 0 <= number < 1 << 31:
        raise _wrong("smem", "a number of bytes", value)
    return number


def device_number(device: object) -> int | Literal["cpu"] | None:
    """Return the number of a GPU, ``"cpu"``, or ``None`` for the GPU of the arrays, which is the default.

    Raises :class:`OptionError`.
    """
    text = str(device) if type(device).__module__ == "torch" else device  # a torch.device
    if isinstance(text, str):
        if text in ("gpu", "cuda"):
            return None
        if text == "cpu":
            return "cpu"
        number = text.removeprefix("cuda:")
        if number != text and number.isascii() and number.isdigit():
            return int(number)
    elif text is None:
        return None
    else:
        found = index_of(text)
        if found is not None and found >= 0:
            return found
    raise _wrong("device", "'gpu', 'cuda:N', a number or 'cpu'", device)


class Checks(NamedTuple):
    """Checks of a run on the interpreter.  ``budgeted`` checks stop when the run takes long."""

    names: tuple[str, ...]
    budgeted: bool = False


def read_checks(value: object, default: str = "none") -> Checks:
    """Read the option ``checks``: None selects ``CUTE_CHECKS``, and ``default`` if that is not set.

    >>> read_checks("race,sync"), read_checks("auto")
    (Checks(names=('race', 'sync'), budgeted=False), Checks(names=('race', 'uninit'), budgeted=True))

    Raises:
        OptionError: a name is unknown.
    """
    name = "checks"
    if value is None:
        name = "CUTE_CHECKS"
        value = word(name) or default
    given = value.split(",") if isinstance(value, str) else value
    if isinstance(given, tuple | list | set | frozenset):
        names = [n.strip() if isinstance(n, str) else n for n in cast("Sequence[object]", given)]
        names = [n for n in names if n != ""]
        if len(names) == 1 and names[0] in _GROUPS:
            return _GROUPS[str(names[0])]
        if all(n in CHECKS for n in names):
            return Checks(tuple([str(n) for n in names]))
        value = next(n for n in names if n not in CHECKS)
    known = ", ".join(repr(k) for k in CHECKS)
    raise _wrong(name, f"any of {known}, as 'race,sync' or a tuple; or 'all', 'auto', 'none'", value)


_GROUPS = {"all": Checks(CHECKS[:-1]), "auto": Checks(("race", "uninit"), budgeted=True), "none": Checks(())}


def check_options(options: Mapping[str, object]) -> None:
    """Check the options of the interpreter, and that they are used with ``device="cpu"``.

    Raises :class:`OptionError`.
    """
    for name, value in options.items():
        if name not in _OPTIONS:
            raise OptionError(f"{name}: unknown argument; options of a call are {', '.join(sorted(_OPTIONS))}")
        if name in _CHECKERS:
            _CHECKERS[name](value)
    if device_number(options.get("device", "gpu")) == "cpu":
        return
    for name, usual in _ON_CPU.items():
        value = options.get(name, usual)
        if name == "checks" and value is not None:
            value = read_checks(value).names or usual
        if value is not usual and value != usual and not (name in ("reports", "unwritten") and not value):
            raise OptionError(f'{name}: only the interpreter has this option; pass device="cpu"')


def _names(option: str, known: Sequence[str]) -> Callable[[object], None]:
    def check(value: object) -> None:
        what = f"a tuple or list with any of {', '.join(repr(k) for k in known)}"
        if not isinstance(value, (tuple, list, set, frozenset)):
            raise _wrong(option, what, value)
        for one in cast("Sequence[object]", value):
            if one not in known:
                raise _wrong(option, what, one)

    return check


def _checks(value: object) -> None:
    read_checks(value)


def _schedule(value: object) -> None:
    if isinstance(value, str) and value.startswith(PREFIX):
        try:
            parse_turns(value)
        except ValueError as e:
            raise OptionError(
                f"schedule: {str(e)!r} is not a turn; write 'replay:0*3,1,c': warp 0 takes three steps, warp 1 one, "
                "and the oldest copy lands"
            ) from None
    elif value not in SCHEDULES:
        raise _wrong("schedule", f"one of {', '.join(repr(s) for s in (*SCHEDULES, 'replay:...'))}", value)


def _seed(value: object) -> None:
    if index_of(value) is None:
        raise _wrong("seed", "an integer", value)


def _blocks(value: object) -> None:
    if value is None or isinstance(value, str):
        return  # the interpreter parses the text, because only it knows the number of blocks
    if not isinstance(value, (tuple, list, range, set, frozenset)):
        raise _wrong("blocks", "block numbers, or a string such as '0,5,16:32' or 'sample:16'", value)
    for one in cast("Sequence[object]", value):
        number = index_of(one)
        if number is None or number < 0:
            raise _wrong("blocks", "block numbers", one)


def _resident(value: object) -> None:
    number = index_of(value)
    if value is not None and (number is None or number < 1):
        raise _wrong("resident", "a number of blocks that is at least 1", value)


def _progress(value: object) -> None:
    if value is not None and not callable(value):
        raise _wrong("progress", "a function", value)


def _unwritten(value: object) -> None:
    named = isinstance(value, (tuple, list, set, frozenset)) and all(
        isinstance(v, str) for v in cast("Sequence[object]", value)
    )
    if not named:
        raise _wrong("unwritten", "a tuple or list of names of array arguments", cast(object, value))


def _field(value: object) -> None:
    if value is not None and not hasattr(value, "matmul"):
        number = index_of(value)
        if number is None or not 2 < number < 1 << 31:
            raise _wrong("field", "a prime below 2^31, for example 65521 for 16-bit floats", value)


_CHECKERS: Mapping[str, Callable[[object], None]] = {
    "checks": _checks,
    "reports": _names("reports", REPORTS),
    "schedule": _schedule,
    "seed": _seed,
    "resident": _resident,
    "blocks": _blocks,
    "progress": _progress,
    "unwritten": _unwritten,
    "field": _field,
}

_OPTIONS = frozenset({"grid", "block", "smem", "device", "max_steps", *_ON_CPU, *_CHECKERS})
