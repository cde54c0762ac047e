"""Copies that are one machine instruction: ``cp.async``, ``ldmatrix``, ``stmatrix``, ``movmatrix`` and shuffles."""

from cute_dialect.cute_nvgpu.family import Family

FAMILY = Family(
    __name__,
    types={"types": tuple(f"cute_nvgpu.atom.{n}" for n in ("simt_async_copy", "ldsm", "stsm", "movm", "shuffle"))},
    ops={"ops": tuple(f"cute_nvgpu.arch.{n}" for n in ("cp_async", "ldmatrix", "stmatrix", "movmatrix", "shuffle"))},
    lower={"ops": "lower"},
    atoms="tile",
    instructions={
        "cute_nvgpu.atom.simt_async_copy": "cute_nvgpu.arch.cp_async",
        "cute_nvgpu.atom.ldsm": "cute_nvgpu.arch.ldmatrix",
        "cute_nvgpu.atom.stsm": "cute_nvgpu.arch.stmatrix",
        "cute_nvgpu.atom.movm": "cute_nvgpu.arch.movmatrix",
        "cute_nvgpu.atom.shuffle": "cute_nvgpu.arch.shuffle",
    },
)
