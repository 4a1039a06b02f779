"""Everything that has a name: one file per paper, model family or dataset."""
