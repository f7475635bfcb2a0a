"""What a gallery's files must be to be used: seals, checks, and maps that cannot harm."""
