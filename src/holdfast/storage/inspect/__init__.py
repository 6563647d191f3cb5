"""Reading and verifying the files of a log without opening it for use."""
