"""`curricula precision`: trainer against generator on a model, in a table, a plot and an advice."""
