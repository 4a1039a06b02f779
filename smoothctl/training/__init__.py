"""Training runs, with and without a teacher."""
