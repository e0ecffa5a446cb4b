"""Ranking: candidates, their scores, and whether the first is clearly the first."""
