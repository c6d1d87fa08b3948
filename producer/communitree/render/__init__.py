"""Results as people read them: pure functions from results to what rich prints."""
