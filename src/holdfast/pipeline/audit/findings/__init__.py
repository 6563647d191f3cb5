"""What an audit found: findings, their reasons, and the verdict."""
