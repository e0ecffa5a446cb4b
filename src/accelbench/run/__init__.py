"""The journey: plan → isolated launches → results."""
