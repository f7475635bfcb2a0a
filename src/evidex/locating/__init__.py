"""Where in a scene something is: windows, a map of likeness, its peaks."""
