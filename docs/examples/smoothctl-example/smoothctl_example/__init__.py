"""An outside package's plugins for smoothctl, one file each."""
