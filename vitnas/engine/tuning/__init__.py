"""Finding the recipe of the short training for the images at hand."""
