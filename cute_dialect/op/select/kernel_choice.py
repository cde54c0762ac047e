"""GEMM problems, kernels, and tables of the kernels that tuning found fastest, one table per GPU.

A table is a JSON file, ``{"format": 1, "gpu":  NAME, "kernels": {PROBLEM: {"kernel": {...}, "tflops": 612.3}}}``.  A
kernel is stored as its fields that differ from the defaults.  This package has tables for some GPUs (``tables/``).
Those that ``cute-bench gemm --tune`` writes are in::

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
from cute_dialect.kernels.common.elements import swapped
from cute_dialect.kernels.common.kernel_names import by, differing
from cute_dialect.kernels.conv.config import ConvConfig
from cute_dialect.kernels.gemm.config import LETTERS, GemmConfig, SkinnyConfig, SplitConfig
from cute_dialect.runtime.settings import user_folder

FORMAT = 1
Entries: TypeAlias = dict[str, dict[str, object]]
_C = TypeVar("_C", GemmConfig, SkinnyConfig)


OF_BLOCKS = ("block", "columns")
"""Arithmetic of GEMMs with block scales: per block of 128 columns of B, or per column."""


class TableError(CuteError, ValueError):
    """A table of tuned kernels that cannot be read."""


class Problem(NamedTuple):
    """A GEMM ``C[m,n] = A[m,k] * B[n,k]^T``, or a batch of them."""

    m: int
    n: int
    k: int
    element: str = "f16"  # of A and B
    output: str = "f16"  # element of C
    major_a: str = "k"  # contiguous mode of A: k or m
    major_b: str = "k"  # contiguous mode of B: k or n
    matrices: int = 1  # number of GEMMs in the batch
    # Arithmetic: "f16" (f16 accumulator), "two" (two-level accumulation), "block" or "columns" (two-level with scales
    # per block of B, or per column), "" for the default.
    sums: str = ""

    @property
    def key(self) -> str:
        """Key of the problem in a table."""
        sizes = (self.m, self.n, self.k) if self.matrices == 1 else (self.matrices, self.m, self.n, self.k)
        types = f"{self.element}{':' * (self.sums != '')}{self.sums}-{self.output}"
        return f"{types}-{self.major_a}{self.major_b} {'x'.join(map(str, sizes))}"

    @classmethod
    def of_key(cls, key: str) -> Problem:
        """Return the problem of a :attr:`key`.  Raises ValueError for another string.

        >>> Problem.of_key("tf32-f32-kk 128x8192x4096") == Problem(128, 8192, 4096, "tf32", "f32")
        True
        """
        extents = r"(?:([1-9]\d*)x)?([1-9]\d*)x([1-9]\d*)x([1-9]\d*)"
        found = re.fullmatch(rf"(\w+)(?::(\w+))?-(\w+)-([km])([kn]) {extents}", key)
        if found is None:
            raise ValueError(f"{key!r} is not a problem; use the form f16-f16-kk 128x8192x4096")
        element, sums, output, major_a, major_b, matrices, m, n, k = found.groups()
        return cls(int(m), int(n), int(k), element, output, major_a, major_b, int(matrices or 1), sums or "")


def swapped_majors(major_a: str, major_b: str) -> tuple[str, str]:
    """Return the contiguous modes of A and B of the transposed problem, whose A is the given B; an involution.

    >>> swapped_majors("m", "k"), swapped_majors("k", "n")
    (('k', 'n'), ('m', 'k'))
    """
    return "k" if major_b == "k" else "m", "k" if major_a == "k" else "n"


class Choice(NamedTuple):
    """A kernel and its configuration."""

    config: GemmConfig  # for a few-rows kernel the ``base`` of ``skinny``
    parts: int = 1  # split-K slices; 1 without split-K
    skinny: SkinnyConfig | None = None  # configuration of a few-rows kernel

    @property
    def swapped(self) -> bool:
        """True if the kernel computes ``C^T = B A^T`` for row-major A, B and C; ``config`` describes that problem."""
        return self.config.major_c == "m"

    @property
    def majors(self) -> tuple[str, str]:
        """Contiguous modes of A and B of the kernel's problems, before a transposition.

        >>> Choice(GemmConfig(major_a="m", major_c="m", deferred=False)).majors
        ('k', 'n')
        """
        c = self.config
        return swapped_majors(c.major_a, c.major_b) if self.swapped else (c.major_a, c.major_b)

    @property
    def name(self) -> str:
        """Name of the kernel: types, majors, tile, cluster, and the settings that differ from the defaults.

        Letters stand for flags (``kernels.gemm.config.LETTERS``), ``c``, ``n``: cluster along M and N, ``q``: stages,
        ``g``: raster group, ``s``: split-K slices, ``h``: B is evicted first from L2, ``u``: staging buffers per
        consumer, ``z``: bytes of K.
        """
        if self.skinny is not None:
            return self.skinny.name
        c = self.config
        more = differing(c, LETTERS, deferred=False) + differing(c, {"stages": "-q{}", "group": "-g{}"})
        more += differing(self, {"parts": "-s{}"})
        more += differing(c, {"stream_b": "-h1", "buffers": "-u{}", "k_bytes": "-z{}"}, k_bytes=128)
        element = swapped(c.element) if self.swapped else c.element
        epilogue = c.epilogue.transposed() if self.swapped else c.epilogue
        kind = f"{element}-{c.output}-{''.join(self.majors)}"
        return f"{kind}-{by(c.tile[:2])}-{c.cluster_name}{more}{epilogue.suffix}"

    @property
    def columns_at_once(self) -> int:
        """Number of columns that an epilogue of the kernel processes at once."""
        if self.skinny is not None:
            return self.skinny.columns // self.skinny.pieces
        return SplitConfig(self.config, self.parts).piece if self.parts > 1 else self.config.part

    def workspace(self, m: int, n: int, matrices: int = 1) -> tuple[int, int]:
        """Return the numbers of floats and counters in the workspace; zero without split-K and stream-K."""
        c = self.config
        m, n = (n, m) if self.swapped else (m, n)
        if c.stream_k:
            return c.sms * c.tile[0] * c.tile[1], c.sms
        if self.parts == 1:
            return 0, 0
        across, along = -(-m // (c.tile[0] * c.cluster_m)), -(-n // (c.tile[1] * c.cluster_n))
        tiles = across * along * c.cluster * matrices
        return SplitConfig(c, self.parts).workspace(tiles), 2 * tiles


def choice_of(config: ConvConfig) -> Choice:
    """Return the GEMM kernel of a convolution kernel, which has another producer."""
    return Choice(config.base, config.parts)


def few_rows(config: SkinnyConfig) -> Choice:
    """Return the few-rows kernel with a configuration."""
    return Choice(config.base, 1, config)


def encode(choice: Choice) -> dict[str, object]:
    """Return the fields of a kernel that differ from the defaults, without its epilogue."""
    if choice.skinny is not None:
        return {"few_rows": _differing(choice.skinny._replace(epilogue=SkinnyConfig().epilogue), SkinnyConfig())}
    config = choice.config._replace(epilogue=GemmConfig().epilogue)
    return _differing(config, GemmConfig()) | ({"parts": choice.parts} if choice.parts > 1 else {})


def decode(fields: Mapping[str, object]) -> Choice:
    """Return the kernel that :func:`encode` encoded.  Raises ValueError for unknown fields or an invalid kernel."""
    if "few_rows" in fields:
        skinny = _replaced(SkinnyConfig(), cast("Mapping[str, object]", fields["few_rows"]))
        skinny.check()
        return few_rows(skinny)
    parts = fields.get("parts", 1)
    if not isinstance(parts, int):
        raise ValueError(f"parts is {parts!r}; it must be an integer")
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
            raise ValueError(f"{type(default).__name__} has no field {name!r}")
        known = values[name]
        if isinstance(known, tuple):
            values[name] = tuple(cast("list[object]", value))
        elif isinstance(value, type(known)):
            values[name] = value
        else:
            raise ValueError(f"{name} is {value!r}; it must be of type {type(known).__name__}")
    return default._replace(**values)  # type: ignore[arg-type]


# ---------------------------------------------------------------------------------------------------------- tables


def table_path(gpu: str) -> Path:
    """Return the path of the user's table for a GPU; ``gpu``: its name as reported by the driver."""
    return Path(user_folder("CUTE_CONFIG_DIR", "XDG_CONFIG_HOME", ".config")) / "gemm" / gpu_file_name(gpu)


def shipped_path(gpu: str) -> Path:
    """Return the path of this package's table for a GPU, whether or not there is one."""
    return Path(__file__).parent / "tables" / gpu_file_name(gpu)


def read(path: Path) -> Entries:
    """Return the entries of a table; none if there is no file, or its format is another one.  Raises TableError."""
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
                raise ValueError(f"{key!r} is not a problem")
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise TableError(f"{path} is not a table of kernels ({e}); write one with cute-bench gemm --tune") from None
    return entries


@cache
def shipped(gpu: str) -> Mapping[str, Choice]:
    """Return the kernels of this package's table for a GPU, by :attr:`Problem.key`."""
    return _decoded(read(shipped_path(gpu)))


def _decoded(entries: Entries) -> dict[str, Choice]:
    return {key: decode(cast("Mapping[str, object]", entry["kernel"])) for key, entry in entries.items()}


@cache
def tuned(gpu: str) -> Mapping[str, Choice]:
    """Return the kernels that tuning found fastest on a GPU, by :attr:`Problem.key`.

    The user's table takes precedence over that of this package.
    """
    return {**shipped(gpu), **_decoded(read(table_path(gpu)))}


def save(gpu: str, found: Mapping[str, tuple[Choice, float]], path: Path | None = None) -> Path:
    """Add kernels and their TFLOP/s, by problem key, to the user's table or the one at ``path``.

    The file is replaced atomically, so a concurrent reader sees the old or the new table.
    """
    path = path or table_path(gpu)
    entries = read(path)
    entries |= {k: {"kernel": encode(choice), "tflops": round(speed, 1)} for k, (choice, speed) in found.items()}
    text = json.dumps({"format": FORMAT, "gpu": gpu, "kernels": dict(sorted(entries.items()))}, indent=1)
    replace_file(path, f"{text}\n".encode())
    tuned.cache_clear()
    return path
