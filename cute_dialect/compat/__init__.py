"""Modules for programs written for CuTe DSL."""
