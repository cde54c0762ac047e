"""Reports of a launch: counts, profile, floating-point operations, timeline and printf."""
