"""The states of the searched cluster, and the real components behind them."""
