"""The search engine: Optuna proposes, the controller decides, a back end runs the trainings."""
