"""Predict a computation under other conditions, by replaying its graph."""
