"""The broker's metrics for Prometheus: what they mean, how they are read, how they are served.

A metric is read when the page is requested, from the parts that have the value anyway. Only what
cannot be read later is counted on the way of a request: by `network/request_counts.py` and
`replication/topic_traffic.py`. No other part of the broker imports this package.

Labels are bounded by what the broker has: its topics, its replicas, the followers of its replicas,
the APIs and versions that it serves. No label has a name that a client can choose freely, such as
a client id, a group or a principal.
"""
