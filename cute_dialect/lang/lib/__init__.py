"""Library code written in the language, and autotuning."""
