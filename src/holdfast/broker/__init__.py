"""The asyncio shell around the core: sockets, one module per API, parked requests, fetchers.

It does what the core decides. Everything outside is reached through the transport, the disk, the
clock and the store that are handed in.
"""
