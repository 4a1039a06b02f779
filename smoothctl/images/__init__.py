"""Images and labels: datasets, image files, resizing, batches."""
