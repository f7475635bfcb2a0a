"""Training: batches → step → loop, with checkpoints, schedules and processes beside them."""
