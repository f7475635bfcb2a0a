"""Whether a gallery's files are still what was written, and what to do where they are not."""
