"""A planned GEMM, and the same GEMM described as in PyCUTLASS. Without a GPU the interpreter runs them.

python examples/plans.py
"""

# REQUIRES: slow
# RUN: %python %s | FileCheck %s
# CHECK: correct; the best tile
# CHECK: f16-64x64x32-3-km-relu: done
# CHECK-NEXT: {{^}}the same
# CHECK-NEXT: {{^}}Gemm on {{.*}}: M 64, N 96, K 72, f16 to f16
# CHECK: kernel {{.*}}-g-
# CHECK: close to the reference

from typing import Any

import numpy as np

from cute_dialect import op
from cute_dialect.op.epilogue import sigmoid
from cute_dialect.runtime.driver import NoGpuError, driver


def where() -> Any:
    """Return the options of calls: the interpreter if there is no Hopper GPU."""
    try:
        return {} if driver().capability(0) == (9, 0) else {"device": "cpu"}
    except NoGpuError:
        return {"device": "cpu"}


def planned(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Plan and run a GEMM, and compare it with the reference."""
    plan = op.Gemm(element="f16", layout="row", alpha=2.0, beta=0.5)
    plan.activation = "relu"
    done = plan.run(a, b, c, **where())
    assert np.array_equal(done.D, plan.reference(a, b, c))
    print(f"{done.operation.name}: correct; the best tile of 4096 each is {plan.tile_descriptions()[0].name}")
    return done.D


def described(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Run a GEMM described by its instruction, tile, operands and epilogue."""
    instruction = op.MathInstruction(
        [16, 8, 16], op.float16, op.float16, op.float32, op.OpClass.TensorOp, op.MathOperation.multiply_add
    )
    tile = op.TileDescription([64, 64, 32], 3, [2, 2, 1], instruction)
    A, B, C = (op.TensorDescription(op.float16, op.RowMajor, 8) for _ in range(3))
    functor = op.LinearCombinationGeneric("relu", op.float16, 8, op.float32, op.float32)
    operation = op.GemmOperationUniversal(80, tile, A, B, C, functor, op.IdentitySwizzle4)
    d = np.zeros_like(c)
    size = op.GemmCoord(a.shape[0], b.shape[1], a.shape[1])
    arguments = op.GemmArguments(operation, size, a, b, c, d, operation.epilogue_type(2.0, 0.5), **where())
    operation.run(arguments)
    arguments.sync()
    print(f"{operation.procedural_name()}: done")
    return d


def swish_residual(accum: Any, alpha: Any, residual: Any) -> Any:
    """Epilogue ``swish(alpha * accum) + residual``."""
    D = alpha * accum * sigmoid(alpha * accum) + residual
    return D


def visited() -> None:
    """Plan a GEMM with a traced epilogue; run, explain and inspect the kernel, and compare it with the function in
    f64.
    """
    rng = np.random.default_rng(0)
    A, B, C, R = (rng.standard_normal(shape).astype(np.float16) for shape in ((64, 72), (72, 96), (64, 96), (64, 96)))
    D = np.zeros_like(C)
    examples = {"accum": op.epilogue.FakeTensor("f32", (64, 96)), "alpha": 1.0, "residual": R}

    plan = op.Gemm(element="f16", layout="row")  # as in PyCUTLASS or cutlass_cppgen
    plan.epilogue_visitor = op.epilogue.trace(swish_residual, examples)
    plan.compile(plan.tile_descriptions()[0])
    args = plan.run(A, B, C, D, visitor_args={"alpha": 2.0, "residual": R, "D": D}, sync=False, **where())
    args.sync()
    print(plan.explain(A, B))
    print(plan.ir("cute").count("wgmma"), "times wgmma in the kernel's file")
    assert np.allclose(D, plan.reference(A, B, C, D), rtol=2e-3, atol=2e-3)
    print("close to the reference")


def main() -> None:
    """Run the two GEMMs with a linear combination, which agree, and the one with a traced epilogue."""
    rng = np.random.default_rng(0)
    a, b, c = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((96, 64), (64, 128), (96, 128)))
    same = np.array_equal(planned(a, b, c), described(a, b, c))
    print("the same" if same else "not the same")
    assert same
    visited()


if __name__ == "__main__":
    main()
