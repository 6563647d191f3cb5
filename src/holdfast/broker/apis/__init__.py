"""One module per API: `handle(<parts>, call)` answers a call, immediately or later."""
