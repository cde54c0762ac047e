"""Memory with real addresses, and the checks of every access."""
