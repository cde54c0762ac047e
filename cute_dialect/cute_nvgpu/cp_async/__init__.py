"""Asynchronous copies from global to shared memory by one thread: ``cp.async``."""

from cute_dialect.cute_nvgpu.family import Family

FAMILY = Family(
    __name__,
    types={"types": ("cute_nvgpu.atom.simt_async_copy",)},
    ops={"ops": ("cute_nvgpu.arch.cp_async",)},
    lower={"ops": "lower"},
    atoms="instruction_copy.tile",
    instructions={
        "cute_nvgpu.atom.simt_async_copy": "cute_nvgpu.arch.cp_async",
    },
    uses=("instruction_copy",),
)
