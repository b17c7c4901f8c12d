"""The convex hull behind KM: the distance of a moving point to it, and how each row moves that distance."""
