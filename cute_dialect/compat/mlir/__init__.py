"""``cutlass._mlir.dialects``: the builders of upstream dialects that programs for CuTe DSL call directly.

Several numbers in registers (LLVM vectors and structures) are Python tuples of numbers, and their type is a tuple of
number types. Building and indexing them emits no code.
"""
