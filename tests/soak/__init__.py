"""Long runs under kills, full disks and second writers; the short form is a test."""
