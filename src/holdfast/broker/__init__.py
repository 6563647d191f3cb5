"""The broker: sockets, one module an API, parked requests, replica fetchers.

It does and never decides: what may be appended, who is in sync and who leads is asked of `core`.
Everything it touches outside goes through four interfaces: the event loop, the network (transports
of that loop), the disk and the agreed store.
"""
