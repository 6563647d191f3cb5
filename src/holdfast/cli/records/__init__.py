"""`holdfast produce` and `holdfast consume`: records in and out, with the habits of kcat."""
