"""Arrays of your own: ``--dataset npz --data FILE.npz``."""

from __future__ import annotations

from pathlib import Path

from smoothctl import ArrayImages, Dataset, UsageError, hookimpl, read_npz


def load(split: str, data: Path | None, download: bool) -> ArrayImages:
    """Refuse what is no .npz file: those that are, the engine opens for every dataset."""
    if data is None:
        raise UsageError("dataset npz needs `data=FILE.npz`")
    if data.suffix != ".npz":
        raise UsageError(f"dataset npz: {data} does not end in .npz; a folder of images is `dataset=folder`")
    return read_npz(data, split)


@hookimpl
def register_datasets() -> list[Dataset]:
    return [
        Dataset(
            "npz",
            load,
            summary="arrays in an .npz file: train_images, train_labels, test_images, test_labels (class_names)",
        )
    ]
