"""Bytes to typed messages and back, all versions; record batches; CRC; compression.

The room does no input or output and knows no clock: bytes come in, values go out, and the other way
round. `messages` holds requests and answers, `records` the record batches inside them.
"""
