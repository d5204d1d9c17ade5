"""What is attached to a live model and always detached again: masks and taps."""
