"""``tensorflow.python.tools``: from what training leaves to what inference loads."""
