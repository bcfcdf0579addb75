"""The parts that blocks are made of; each file holds one of them."""
