"""The simulated world of a scenario: brokers, controller, store, clients, network, disk, time."""
