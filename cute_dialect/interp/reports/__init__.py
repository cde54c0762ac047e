"""Reports of a launch: counts, profile, floating-point operations, and timeline."""
