"""Publishing a version, and ending jobs: where the stages' outputs come together."""
