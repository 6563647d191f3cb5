"""This broker's place in the cluster: its directories, registration and controlled shutdown."""
