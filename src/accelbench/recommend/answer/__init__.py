"""Answers: as plain data, in words, as maps and matrices."""
