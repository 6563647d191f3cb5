"""The controller inside a broker: drives `core.Controller` against the store and the brokers.

Every broker campaigns; one is the controller. `core` makes its decisions. This package reads the
store, writes to it under the controller epoch, and sends requests to the brokers.
"""
