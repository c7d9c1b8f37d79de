"""`curricula simulate`: a mix and uniform draws, run on a simulated learner."""
