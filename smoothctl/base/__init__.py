"""What every room stands on: errors, talking to people, files, random draws, devices."""
