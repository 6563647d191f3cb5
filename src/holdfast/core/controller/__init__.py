"""The controller's decisions: elections, assignments, ISR changes, registrations."""
