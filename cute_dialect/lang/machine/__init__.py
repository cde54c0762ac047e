"""Machine instructions: atoms, copies, MMAs, TMA, barriers, warps, atomics and inline PTX."""
