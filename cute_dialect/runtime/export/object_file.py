"""Exported kernels as object files with headers, for programs that link them.

The system's compiler, ``$CC`` or else ``cc``, compiles the C files of :mod:`cute_dialect.runtime.export.c_files`.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from cute_dialect.files import checked_path
from cute_dialect.runtime.export.c_text import ExportError

__all__ = ["compile_object", "cuda_headers"]


def cuda_headers() -> Path | None:
    """Find the folder of ``cuda.h`` in ``$CUDA_HOME``, ``$CUDA_PATH``, NVIDIA's wheels or /usr/local/cuda."""
    homes = [Path(os.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if name in os.environ]
    spec = find_spec("nvidia")
    for root in spec.submodule_search_locations or () if spec is not None else ():
        homes += sorted(p for p in Path(root).iterdir() if p.is_dir())
    found = (home / "include" for home in (*homes, Path("/usr/local/cuda")))
    return next((folder for folder in found if (folder / "cuda.h").is_file()), None)


def compile_object(
    sources: dict[str, bytes], name: str, file_path: str | os.PathLike[str], file_name: str
) -> dict[str, Path]:
    """Compile ``NAME.c``, write ``FILE_NAME.o`` and ``FILE_NAME.h`` to a folder, and return both files by name.

    Raises ExportError if there is no C compiler or no ``cuda.h``, or if the compiler fails.
    """
    folder = Path(checked_path("export_to_c", "file_path", file_path, ExportError))
    if not file_name:
        raise ExportError(f"export_to_c: file_name must be a name without a suffix, such as 'gemm'; got {file_name!r}")
    compiler = shlex.split(os.environ.get("CC") or "cc")
    headers = cuda_headers()
    if shutil.which(compiler[0]) is None:
        raise ExportError(f"export_to_c: there is no C compiler {compiler[0]!r}; install one, or name it with CC=…")
    if headers is None:
        raise ExportError(
            "export_to_c: found no cuda.h; pip install nvidia-cuda-runtime, or set CUDA_HOME to a CUDA toolkit"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise ExportError(f"export_to_c: cannot write {folder}: {e.strerror}; choose another folder") from e
    with TemporaryDirectory(dir=folder) as made:
        for file, data in sources.items():
            (Path(made) / file).write_bytes(data)
        command = [*compiler, "-std=c11", "-O2", "-fPIC", "-c", f"{name}.c", "-o", "object.o", f"-isystem{headers}"]
        done = subprocess.run(command, cwd=made, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ExportError(f"export_to_c: {compiler[0]} failed with status {done.returncode}: {done.stderr[:1000]}")
        files = {f"{file_name}.h": folder / f"{file_name}.h", f"{file_name}.o": folder / f"{file_name}.o"}
        os.replace(Path(made) / f"{name}.h", files[f"{file_name}.h"])
        os.replace(Path(made) / "object.o", files[f"{file_name}.o"])
    return files
