"""The controller inside a broker: drives `core.Controller` against the store and the brokers.

Every broker has one of these and campaigns; one of them reigns. What a reign decides is `core`'s
affair. What is here reads the store, writes it under the controller's epoch, and tells the brokers.
"""
