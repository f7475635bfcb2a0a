"""The methods that the paper compares ELC with: what each is, and those that can be trained or measured here."""

from evidex.methods.registry import METHODS, Method

__all__ = ["METHODS", "Method"]
