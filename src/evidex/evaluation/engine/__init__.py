"""Experiments as tasks: named by digests, done once, several at a time, each after those it needs."""
