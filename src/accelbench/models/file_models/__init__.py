"""Models of the user's own files: what a file is, what it reads and gives, and how it is fed."""
