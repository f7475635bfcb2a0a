"""Ray, which carries what is past one machine."""
