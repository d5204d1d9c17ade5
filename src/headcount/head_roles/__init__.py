"""What heads do: positional, syntactic, rare tokens and more, each with its evidence. One file per role."""
