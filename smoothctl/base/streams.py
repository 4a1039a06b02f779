"""What random numbers are drawn for."""

from __future__ import annotations

from enum import IntEnum


class Stream(IntEnum):
    """What a draw is for. Streams are disjoint, so that selection never sees estimation's noise."""

    SELECT = 0
    ESTIMATE = 1
    PILOT = 2
    PREDICT = 3
    TRAIN_NOISE = 4
    TRAIN_ORDER = 5
    TRAIN_AUGMENT = 6
    EVALUATE = 7
    TRAIN_UNIFORM = 8
    TRAIN_CROP = 9
    IMAGE_ORDER = 10
    ATTACK = 11
