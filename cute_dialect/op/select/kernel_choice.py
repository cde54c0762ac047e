"""A problem, a kernel for it, and what tuning found: tables of the best kernel of each problem, one for each GPU.

A table is a JSON file, ``{"format": 1, "gpu": NAME, "kernels": {PROBLEM: {"kernel": {...}, "tflops": 612.3}}}``; a
kernel is written as its fields that differ from the defaults.  Tables for some GPUs come with this package
(``tables/``); what ``cute-bench gemm --tune`` finds is in

    CUTE_CONFIG_DIR          (default: $XDG_CONFIG_HOME/cute-dialect, ~/.config/cute-dialect)

>>> choice = Choice(GemmConfig(cluster_m=1, deferred=False), 2)
>>> encode(choice)
{'cluster_m': 1, 'deferred': False, 'parts': 2}
>>> decode(encode(choice)) == choice
True
>>> Problem(128, 8192, 4096).key, Problem(64, 64, 128, matrices=32).key
('f16-f16-kk 128x8192x4096', 'f16-f16-kk 32x64x64x128')
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeAlias, TypeVar, cast

from cute_dialect.errors import CuteError
from cute_dialect.files import gpu_file_name, replace_file
from cute_dialect.kernels.gemm.config import GemmConfig, SplitConfig
from cute_dialect.kernels.gemm.elements import swapped
from cute_dialect.kernels.gemm.few_rows_config import SkinnyConfig
from cute_dialect.runtime.settings import user_folder

__all__ = [
    "OF_BLOCKS",
    "Choice",
    "Problem",
    "TableError",
    "decode",
    "encode",
    "few_rows",
    "save",
    "shipped",
    "swapped_majors",
    "table_path",
    "tuned",
]

FORMAT = 1
Entries: TypeAlias = dict[str, dict[str, object]]
_C = TypeVar("_C", GemmConfig, SkinnyConfig)


OF_BLOCKS = ("block", "columns")
"""Sums of products that have scales of blocks: of 128 columns of B, of each one."""


class TableError(CuteError, ValueError):
    """A table of tuned kernels that cannot be read."""


class Problem(NamedTuple):
    """``C[m,n] = A[m,k] * B[n,k]^T``; elements of A and B, of C; the contiguous modes of A (``k``, ``m``) and B (``k``,
    ``n``); so many ``matrices`` of a batch; ``sums``: how they are added up, ``f16`` in f16, ``two`` in two levels,
    ``block`` in two levels with scales of blocks, ``columns`` with those of single columns of B; else as is usual.
    """

    m: int
    n: int
    k: int
    element: str = "f16"
    output: str = "f16"
    major_a: str = "k"
    major_b: str = "k"
    matrices: int = 1
    sums: str = ""

    @property
    def key(self) -> str:
        """Its name in a table."""
        sizes = (self.m, self.n, self.k) if self.matrices == 1 else (self.matrices, self.m, self.n, self.k)
        types = f"{self.element}{':' * (self.sums != '')}{self.sums}-{self.output}"
        return f"{types}-{self.major_a}{self.major_b} {'x'.join(map(str, sizes))}"

    @classmethod
    def of_key(cls, key: str) -> Problem:
        """Return the problem of a :attr:`key`.  Raises ValueError for what is none.

        >>> Problem.of_key("tf32-f32-kk 128x8192x4096") == Problem(128, 8192, 4096, "tf32", "f32")
        True
        """
        extents = r"(?:([1-9]\d*)x)?([1-9]\d*)x([1-9]\d*)x([1-9]\d*)"
        found = re.fullmatch(rf"(\w+)(?::(\w+))?-(\w+)-([km])([kn]) {extents}", key)
        if found is None:
            raise ValueError(f"expected a problem like f16-f16-kk 128x8192x4096, got {key!r}")
        element, sums, output, major_a, major_b, matrices, m, n, k = found.groups()
        return cls(int(m), int(n), int(k), element, output, major_a, major_b, int(matrices or 1), sums or "")


def swapped_majors(major_a: str, major_b: str) -> tuple[str, str]:
    """Return the contiguous modes of A and B of the swapped problem, whose A is this one's B; twice gives them back.

    >>> swapped_majors("m", "k"), swapped_majors("k", "n")
    (('k', 'n'), ('m', 'k'))
    """
    return "k" if major_b == "k" else "m", "k" if major_a == "k" else "n"


class Choice(NamedTuple):
    """A kernel: its configuration, and how many blocks share the K of a tile (1: none do); or that for few rows, whose
    ``base`` is then ``config``.
    """

    config: GemmConfig
    parts: int = 1
    skinny: SkinnyConfig | None = None

    @property
    def swapped(self) -> bool:
        """Tell whether it computes ``C^T = B A^T``, of row-major A, B and C; its configuration is of that problem."""
        return self.config.major_c == "m"

    @property
    def majors(self) -> tuple[str, str]:
        """The contiguous modes of A and B of the problems that it is for: not those of a swapped one.

        >>> Choice(GemmConfig(major_a="m", major_c="m", deferred=False)).majors
        ('k', 'n')
        """
        c = self.config
        return swapped_majors(c.major_a, c.major_b) if self.swapped else (c.major_a, c.major_b)

    @property
    def name(self) -> str:
        """Names the kernel: types, majors, tile, what differs from the defaults.

        ``c``: blocks of a cluster along M, ``n``: along N; ``b``: batches; ``d``: deferred store; ``p``: promotion;
        ``t``: consumers take turns; ``k``: the last wave is shared; ``w``: columns of C are contiguous (the
        swapped problem); ``a``: sums in f16; ``x``: scales of blocks; ``v``: matrices anywhere; ``y``: sums saturate;
        ``e``: scales are exponents; ``f``: each column of B has scales; ``o``: C of any rows; ``l``: dependent launch;
        ``q``: stages; ``g``: raster group; ``s``: blocks that share the K of a tile; ``h``: B leaves the L2 first;
        ``u``: staging buffers of a consumer; ``z``: bytes of K.
        """
        if self.skinny is not None:
            return self.skinny.name
        c = self.config
        m, n, _ = c.tile
        shape = f"c{c.cluster_m}" * (c.cluster_m > 1 or c.cluster_n == 1) + f"n{c.cluster_n}" * (c.cluster_n > 1)
        flags = (
            ("b", c.batch), ("d", c.deferred), ("p", c.promote), ("t", c.schedule == "pingpong"), ("k", c.stream_k),
            ("w", self.swapped), ("a", c.accumulator == "f16"), ("x", c.scaled), ("v", c.array), ("y", c.saturate),
            ("e", c.scales == "ui8"), ("o", c.direct), ("l", c.dependent), ("f", c.scaled_columns),
        )  # fmt: skip
        more = "".join(letter for letter, there in flags if there)
        options = (
            ("q", c.stages, 4), ("g", c.group, 8), ("s", self.parts, 1), ("h", int(c.stream_b), 0), ("u", c.buffers, 2),
            ("z", c.tile[2] * c.bits // 8, 128),
        )  # fmt: skip
        more += "".join(f"-{key}{value}" for key, value, default in options if value != default)
        more += f"-{(c.epilogue.transposed() if self.swapped else c.epilogue).name}" if c.epilogue.active else ""
        element = swapped(c.element) if self.swapped else c.element
        return f"{element}-{c.output}-{''.join(self.majors)}-{m}x{n}-{shape}{more}"

    @property
    def columns_at_once(self) -> int:
        """Columns whose rows an epilogue of the kernel is given at once."""
        if self.skinny is not None:
            return self.skinny.columns // self.skinny.pieces
        return SplitConfig(self.config, self.parts).piece if self.parts > 1 else self.config.part

    def workspace(self, m: int, n: int, matrices: int = 1) -> tuple[int, int]:
        """Return floats and counters that the blocks of a problem share; none unless they share K."""
        c = self.config
        m, n = (n, m) if self.swapped else (m, n)
        if c.stream_k:
            return c.sms * c.tile[0] * c.tile[1], c.sms
        if self.parts == 1:
            return 0, 0
        across, along = -(-m // (c.tile[0] * c.cluster_m)), -(-n // (c.tile[1] * c.cluster_n))
        tiles = across * along * c.cluster * matrices
        return SplitConfig(c, self.parts).workspace(tiles), 2 * tiles


def few_rows(config: SkinnyConfig) -> Choice:
    """Return the kernel for few rows."""
    return Choice(config.base, 1, config)


def encode(choice: Choice) -> dict[str, object]:
    """Return the fields that differ from the defaults; without an epilogue."""
    if choice.skinny is not None:
        return {"few_rows": _differing(choice.skinny._replace(epilogue=SkinnyConfig().epilogue), SkinnyConfig())}
    config = choice.config._replace(epilogue=GemmConfig().epilogue)
    return _differing(config, GemmConfig()) | ({"parts": choice.parts} if choice.parts > 1 else {})


def decode(fields: Mapping[str, object]) -> Choice:
    """Return the choice of :func:`encode`.  Raises ValueError for unknown fields and for what is no kernel."""
    if "few_rows" in fields:
        skinny = _replaced(SkinnyConfig(), cast("Mapping[str, object]", fields["few_rows"]))
        skinny.check()
        return few_rows(skinny)
    parts = fields.get("parts", 1)
    if not isinstance(parts, int):
        raise ValueError(f"expected a number of parts, got {parts!r}")
    config = _replaced(GemmConfig(), {k: v for k, v in fields.items() if k != "parts"})
    config.check() if parts == 1 else SplitConfig(config, parts).check()
    return Choice(config, parts)


def _differing(config: _C, default: _C) -> dict[str, object]:
    values: dict[str, object] = config._asdict()
    defaults: dict[str, object] = default._asdict()
    changed = {k: v for k, v in values.items() if v != defaults[k]}
    return {k: list(cast("tuple[object, ...]", v)) if isinstance(v, tuple) else v for k, v in changed.items()}


def _replaced(default: _C, fields: Mapping[str, object]) -> _C:
    values: dict[str, object] = default._asdict()
    for name, value in fields.items():
        if name not in values:
            raise ValueError(f"expected fields of {type(default).__name__}, got {name!r}")
        known = values[name]
        if isinstance(known, tuple):
            values[name] = tuple(cast("list[object]", value))
        elif isinstance(value, type(known)):
            values[name] = value
        else:
            raise ValueError(f"expected {type(known).__name__} for {name}, got {value!r}")
    return default._replace(**values)  # type: ignore[arg-type]


# ---------------------------------------------------------------------------------------------------------- tables


def table_path(gpu: str) -> Path:
    """Return where the user's table for a GPU is; ``gpu``: its name as the driver tells it."""
    return Path(user_folder("CUTE_CONFIG_DIR", "XDG_CONFIG_HOME", ".config")) / "gemm" / gpu_file_name(gpu)


def shipped_path(gpu: str) -> Path:
    """Return where the table that comes with this package is, if there is one for the GPU."""
    return Path(__file__).parent / "tables" / gpu_file_name(gpu)


def read(path: Path) -> Entries:
    """Return the entries of a table; none where there is no file, or one of another format.  Raises TableError."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    try:
        found = json.loads(text)
        if found["format"] != FORMAT:
            return {}
        entries = cast("Entries", found["kernels"])
        for key, entry in entries.items():
            decode(cast("Mapping[str, object]", entry["kernel"]))
            if not re.fullmatch(r"\S+ (\d+x)?\d+x\d+x\d+", key):
                raise ValueError(f"expected a problem, got {key!r}")
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise TableError(f"{path}: expected a table of kernels (cute-bench gemm --tune writes one), got {e}") from None
    return entries


@cache
def shipped(gpu: str) -> Mapping[str, Choice]:
    """Return the kernels of the table of this package for a GPU, by :attr:`Problem.key`."""
    return _decoded(read(shipped_path(gpu)))


def _decoded(entries: Entries) -> dict[str, Choice]:
    return {key: decode(cast("Mapping[str, object]", entry["kernel"])) for key, entry in entries.items()}


@cache
def tuned(gpu: str) -> Mapping[str, Choice]:
    """Return the kernels that tuning found best on a GPU, by :attr:`Problem.key`: the user's table before the shipped
    one.
    """
    return {**shipped(gpu), **_decoded(read(table_path(gpu)))}


def save(gpu: str, found: Mapping[str, tuple[Choice, float]], path: Path | None = None) -> Path:
    """Add to the user's table (or the one at ``path``): the choice and TFLOP/s of each problem's key.  The file is
    replaced as a whole, so that who reads it meanwhile sees the old one or the new one.
    """
    path = path or table_path(gpu)
    entries = read(path)
    entries |= {k: {"kernel": encode(choice), "tflops": round(speed, 1)} for k, (choice, speed) in found.items()}
    text = json.dumps({"format": FORMAT, "gpu": gpu, "kernels": dict(sorted(entries.items()))}, indent=1)
    replace_file(path, f"{text}\n".encode())
    tuned.cache_clear()
    return path
