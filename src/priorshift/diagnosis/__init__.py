"""Whether a number can be believed: one question a room, over a target that was examined once."""
