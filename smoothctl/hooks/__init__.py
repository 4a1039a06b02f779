"""Where the engine and its plugins meet: hooks, what plugins return, and who brought it."""
