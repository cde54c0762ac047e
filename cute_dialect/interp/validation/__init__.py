"""Translation validation: functions with cute ops and their lowered forms, run on the same numbers."""
