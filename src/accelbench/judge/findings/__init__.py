"""What a store says to whoever decides: findings in sentences, each with what it rests on."""
