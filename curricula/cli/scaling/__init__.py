"""`curricula scaling`: fits, forecasts, comparisons, allocations and pilots, from points that a run left behind."""
