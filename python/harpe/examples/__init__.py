"""Programs to start from: `python -m harpe.examples.plan_only`."""
