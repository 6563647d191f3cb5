"""What this broker knows of the cluster: from the coordination store and from the controller."""
