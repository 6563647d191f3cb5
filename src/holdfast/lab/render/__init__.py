"""What `frames`, `narrate` and `explain` are made of: folding a trace, and wording it."""
