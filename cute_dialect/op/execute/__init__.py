"""From a chosen kernel to its launches: compiled kernels, recorded calls and replay."""
