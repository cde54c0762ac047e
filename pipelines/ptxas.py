"""NVIDIA's programs: assembly of PTX with ``ptxas``, parsing of its report, and disassembly with ``nvdisasm``.

ptxas is searched in ``CUTE_PTXAS``, in the ``nvidia-cuda-nvcc`` wheel (``nvidia/cu13/bin/ptxas``), and on PATH.  It is
optional for PTX output: the driver assembles PTX at load time, with its own ptxas and without a report.

ptxas assembles whole programs, never with ``-c``, because relocatable code loses ``setmaxnreg`` (note C7504).
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from cute_dialect.arch.targets import DEFAULT_CHIP
from cute_dialect.runtime.settings import program

if TYPE_CHECKING:
    from subprocess import CompletedProcess

__all__ = [
    "INSTALL_HINT",
    "Assembled",
    "KernelReport",
    "PtxasError",
    "PtxasMissing",
    "assemble",
    "disassemble",
    "find_program",
    "find_ptxas",
    "parse_report",
    "version",
]


# ------------------------------------------------------------------------------------------------------------- programs


def _execute(command: Sequence[str]) -> CompletedProcess[str]:
    import subprocess

    return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)


INSTALL_HINT = (
    "no ptxas found: pip install nvidia-cuda-nvcc (any CUDA 13 wheel), or set CUTE_PTXAS to the path of a ptxas, or "
    "put one on PATH"
)


class PtxasError(Exception):
    """ptxas rejected the PTX; the message holds its first errors."""


class PtxasMissing(PtxasError):
    """ptxas was not found; the message names the package to install."""


def find_ptxas() -> str:
    """Return the path of ptxas.  Raises :class:`PtxasMissing`, or ``SettingError`` for a bad ``CUTE_PTXAS``."""
    found = program("CUTE_PTXAS") or find_program("ptxas", "cuda_nvcc")
    if found is None:
        raise PtxasMissing(INSTALL_HINT)
    return found


def find_program(name: str, wheel: str) -> str | None:
    """Return the path of a CUDA program in NVIDIA's wheels or on PATH.  ``wheel``: its folder in releases before 13."""
    from shutil import which

    for base in sys.path:
        for folder in ("cu14", "cu13", wheel):
            path = os.path.join(base, "nvidia", folder, "bin", name)
            if os.access(path, os.X_OK):
                return path
    return which(name)


# ------------------------------------------------------------------------------------------------- assembly and reports


@dataclass(frozen=True)
class KernelReport:
    """Report of ``ptxas -v`` on one kernel.  Registers count per thread; sizes are in bytes."""

    name: str
    registers: int
    spill_stores: int
    spill_loads: int
    stack: int
    smem: int
    """static shared memory"""
    constant: int
    """constant bank 0: the parameters and data of the driver"""
    barriers: int
    code: int = 0
    """size of the machine code"""

    @property
    def spills(self) -> int:
        """Bytes spilled, stores plus loads."""
        return self.spill_stores + self.spill_loads


@dataclass(frozen=True)
class Assembled:
    """A cubin with the report of ptxas."""

    cubin: bytes
    kernels: tuple[KernelReport, ...]
    warnings: tuple[str, ...]
    ptxas: str
    """version of the ptxas, e.g. ``13.0.88``"""

    def report(self) -> str:
        """Return the report as readable lines."""
        lines = [
            f"{k.name}: {k.registers} registers, {k.spills} bytes spilled, {k.stack} bytes stack, "
            f"{k.smem} bytes shared, {k.barriers} barriers, {k.code} bytes of code"
            for k in self.kernels
        ]
        return "\n".join([f"ptxas {self.ptxas}", *lines, *(f"warning: {w}" for w in self.warnings)]) + "\n"

    def to_json(self) -> dict[str, object]:
        """Return the report as plain data, without the cubin."""
        return {
            "ptxas": self.ptxas,
            "kernels": [asdict(k) for k in self.kernels],
            "warnings": list(self.warnings),
        }


def disassemble(cubin: bytes, *options: str) -> str:
    """Disassemble machine code with nvdisasm and further options.

    Raises :class:`PtxasMissing` or :class:`PtxasError`.
    """
    import tempfile

    path = find_program("nvdisasm", "cuda_nvdisasm")
    if path is None:
        raise PtxasMissing("no nvdisasm found: pip install nvidia-cuda-nvdisasm, or put one on PATH")
    with tempfile.NamedTemporaryFile(prefix="cute-", suffix=".cubin") as f:
        f.write(cubin)
        f.flush()
        command = [path, "-c", *options, f.name]
        done = _execute(command)
    if done.returncode != 0:
        raise PtxasError(f"{path}: {(done.stderr or done.stdout).strip() or f'exited with status {done.returncode}'}")
    return done.stdout


@lru_cache(maxsize=8)
def version(path: str) -> str:
    """Return the version of the ptxas at ``path``, e.g. ``13.0.88``; ``unknown`` if it does not print one."""
    out = _execute([path, "--version"]).stdout
    found = re.search(r"V(\d+(?:\.\d+)+)", out) or re.search(r"release (\d+(?:\.\d+)+)", out)
    return found.group(1) if found else "unknown"


def assemble(ptx: str, chip: str = DEFAULT_CHIP, *, opt_level: int = 3, extra: tuple[str, ...] = ()) -> Assembled:
    """Assemble ``ptx`` for ``chip`` (e.g. ``sm_90a``).  Line info in the PTX is kept in the cubin.

    Raises :class:`PtxasMissing` or :class:`PtxasError` (with the first lines of the output of ptxas).
    """
    path = find_ptxas()
    try:
        lines = ["-lineinfo"] if "\n\t.loc\t" in ptx else []
        output, cubin = _run(path, ptx, chip, [f"-O{opt_level}", *lines, *extra])
    except OSError as e:
        if e.filename == path:
            raise PtxasError(f"cannot run {path}: {e.strerror}; set CUTE_PTXAS to another ptxas") from e
        raise PtxasError(
            f"cannot write the PTX to a temporary folder: {e.strerror}; free some space, "
            "or set TMPDIR to another folder"
        ) from e
    kernels, warnings = parse_report(output)
    sizes = code_sizes(cubin)
    kernels = tuple(replace(k, code=sizes.get(k.name, 0)) for k in kernels)
    return Assembled(cubin, kernels, warnings, version(path))


def _run(path: str, ptx: str, chip: str, options: Sequence[str]) -> tuple[str, bytes]:
    """Run ptxas and return its output and the cubin.

    Raises :class:`PtxasError` if ptxas fails, and ``OSError`` if it cannot be run.
    """
    import tempfile

    with tempfile.TemporaryDirectory(prefix="cute-ptxas-") as folder:
        source, image = os.path.join(folder, "kernel.ptx"), os.path.join(folder, "kernel.cubin")
        with open(source, "w", encoding="utf-8") as f:
            f.write(ptx)
        command = [path, "-v", f"-arch={chip}", *options, source, "-o", image]
        done = _execute(command)
        output = (done.stdout + done.stderr).replace(source, "kernel.ptx")
        if done.returncode != 0:
            errors = [line.strip() for line in output.splitlines() if re.search(r"error|fatal", line)]
            lines = errors or [line.strip() for line in output.splitlines() if line.strip()]
            more = f" (and {len(lines) - 4} more)" if len(lines) > 4 else ""
            lines = lines or [f"exited with status {done.returncode} and printed nothing"]
            raise PtxasError(f"ptxas {version(path)} for {chip}: " + "; ".join(lines[:4]) + more)
        if not os.path.exists(image):
            raise PtxasError(f"{path} wrote no cubin; it may not be a ptxas")
        with open(image, "rb") as f:
            return output, f.read()


def code_sizes(cubin: bytes) -> dict[str, int]:
    """Return the machine code size of each kernel: the sections ``.text.NAME`` of the cubin, an ELF file."""
    import struct

    if cubin[:5] != b"\x7fELF\x02":
        return {}
    (table,) = struct.unpack_from("<Q", cubin, 0x28)
    entry, count, names = struct.unpack_from("<HHH", cubin, 0x3A)

    def section(i: int) -> tuple[int, int, int]:
        """Return name offset, data offset and size of a section."""
        (name,) = struct.unpack_from("<I", cubin, table + i * entry)
        offset, size = struct.unpack_from("<QQ", cubin, table + i * entry + 0x18)
        return name, offset, size

    strings = section(names)[1]
    found: dict[str, int] = {}
    for i in range(count):
        name, _, size = section(i)
        text = cubin[strings + name : cubin.index(b"\0", strings + name)].decode()
        if text.startswith(".text."):
            found[text.removeprefix(".text.")] = size
    return found


def parse_report(output: str) -> tuple[tuple[KernelReport, ...], tuple[str, ...]]:
    """Parse the kernels and warnings in the output of ``ptxas -v``.

    >>> text = '''ptxas info    : Compiling entry function 'add' for 'sm_90a'
    ... ptxas info    : Function properties for add
    ...     0 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads
    ... ptxas info    : Used 24 registers, used 1 barriers, 1024 bytes smem, 600 bytes cmem[0]'''
    >>> (k,), w = parse_report(text)
    >>> k.name, k.registers, k.spills, k.smem, k.constant, k.barriers, w
    ('add', 24, 12, 1024, 600, 1, ())
    """
    kernels: list[KernelReport] = []
    warnings: list[str] = []
    parts = re.split(r"(?m)^ptxas info\s*: Compiling entry function '([^']+)' for '[^']*'$", output)
    for name, body in zip(parts[1::2], parts[2::2], strict=True):
        kernels.append(
            KernelReport(
                name,
                registers=_number(r"Used (\d+) registers", body),
                spill_stores=_number(r"(\d+) bytes spill stores", body),
                spill_loads=_number(r"(\d+) bytes spill loads", body),
                stack=_number(r"(\d+) bytes stack frame", body),
                smem=_number(r"(\d+) bytes smem", body),
                constant=_number(r"(\d+) bytes cmem\[0\]", body),
                barriers=_number(r"used (\d+) barriers", body),
            )
        )
    for line in output.splitlines():
        if re.search(r"warning|Potential Performance Loss|\bC7\d\d\d\b", line):
            warnings.append(line.strip())
    return tuple(kernels), tuple(warnings)


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    return int(found.group(1)) if found else 0
