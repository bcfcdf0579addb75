"""Reference networks that anybody could have taken instead of searching."""
