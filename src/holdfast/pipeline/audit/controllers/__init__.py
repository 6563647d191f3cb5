"""What the controllers decided: KRaft's metadata log, or the coordination store."""
