"""Programs with a known answer, and the score of what daskscope says about them."""
