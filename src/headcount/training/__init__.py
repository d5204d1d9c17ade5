"""A training loop on Accelerate, with batches by tokens, a schedule, and states to resume from."""
