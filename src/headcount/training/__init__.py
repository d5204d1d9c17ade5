"""One readable training loop on Accelerate, and what it needs: batches by tokens, a schedule, states to resume from."""
