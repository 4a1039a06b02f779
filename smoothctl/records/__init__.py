"""What commands leave behind: logs, run directories, lineage and cost."""
