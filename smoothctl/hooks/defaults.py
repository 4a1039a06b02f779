"""What is meant where nothing is named: the only names of plugins that the engine knows."""

METHOD = "gaussian"
TRANSFER_METHOD = "crt"
DATASET = "digits"
ARCHITECTURE = "resnet20"
NOISE = "gaussian"
RULE = "cohen"
BACKEND = "eager"
