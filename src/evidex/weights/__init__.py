"""Published weights that models are made from: where they are, how they are read, and differences to them."""
