"""What a person sees while a run goes on and when it has ended."""
