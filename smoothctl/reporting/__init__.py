"""What logs and runs tell: measures, comparisons, tables, plots and pages."""
