"""The module under construction, its ops and their source positions."""
