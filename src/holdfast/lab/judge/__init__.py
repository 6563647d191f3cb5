"""What must hold, what became of every record, and why a record is gone."""
