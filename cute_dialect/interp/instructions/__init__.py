"""Semantics of instructions: builders of the ops, and handlers of inline PTX."""
