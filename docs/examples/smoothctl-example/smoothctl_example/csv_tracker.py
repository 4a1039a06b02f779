"""A tracker: one line of CSV per epoch beside the run."""

from smoothctl import hookimpl


@hookimpl
def observe(event):
    if event.kind == "train.epoch":
        with (event.run / "loss.csv").open("a") as file:
            file.write(f"{event.data['epoch']},{event.data['loss']}\n")
