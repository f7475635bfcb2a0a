"""Pretrained weights that training starts from: where they come from and how they are converted."""
