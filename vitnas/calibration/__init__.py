"""How well cheap trainings and scores foretell how long trainings rank a space's networks."""
