"""Everything that smoothctl reads."""

from __future__ import annotations

from tests.fuzz import images, lines, models, records

READERS = (*records.READERS, *models.READERS, *images.READERS, *lines.READERS)
