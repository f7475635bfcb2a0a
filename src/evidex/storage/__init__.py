"""Galleries on object storage: places, the connection to them, and who may write."""
