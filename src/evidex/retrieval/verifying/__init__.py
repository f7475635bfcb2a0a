"""Every file and row of a gallery looked at, and mended where it can be."""
