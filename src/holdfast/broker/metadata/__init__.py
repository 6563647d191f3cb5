"""This broker's metadata of the cluster: from the coordination store and from the controller."""
