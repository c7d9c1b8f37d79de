"""`curricula demo`: what a curriculum does, seen on this machine in a few minutes."""
