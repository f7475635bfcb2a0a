"""A study: variants of one configuration, trained and measured, one line of results a run."""
