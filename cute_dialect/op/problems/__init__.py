"""Checked arguments of operations."""
