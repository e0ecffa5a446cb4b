"""Training by several processes: ranks that torch's elastic agent starts, and who asks them."""
