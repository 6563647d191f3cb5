"""The definitions of all messages, one module for each family of APIs."""
