"""What the commands are made of: tables, workflow, model files, report and review."""
