"""What people look at: charts, report, dashboard."""
