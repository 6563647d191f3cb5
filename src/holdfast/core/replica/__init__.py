"""One partition on one broker: the decisions of a leader and of a follower."""
