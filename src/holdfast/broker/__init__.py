"""The broker: sockets, one module per API, parked requests, replica fetchers.

The broker carries out decisions and makes none: `core` decides what may be appended, who is in sync
and who leads. Four interfaces lead outside: the event loop, the network (transports of that loop),
the disk and the coordination store.
"""
