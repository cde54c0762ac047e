"""Epilogues: element functions, graphs of them, and their code over accumulators."""
