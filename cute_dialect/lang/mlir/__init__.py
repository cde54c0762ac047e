"""``cutlass._mlir.dialects``: the few builders of upstream dialects that programs for CuTe DSL call by themselves.

Registers of several numbers (vectors and structures of LLVM) are Python tuples of numbers here, of a type that is a
tuple of number types; what builds or takes them apart emits nothing.
"""
