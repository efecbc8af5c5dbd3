"""What every package uses: no mathematics."""
