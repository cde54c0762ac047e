"""Plans: GEMMs that are described once, then run, compiled, explained and saved."""
