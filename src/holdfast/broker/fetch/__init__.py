"""Serving Fetch requests: sessions, parked fetches, replica selection, throttles."""
