"""Operations, arguments and descriptions with the names of CUTLASS's Python interface."""
