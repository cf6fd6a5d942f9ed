"""Deliver rows to subscribers: encode, number, spool and send them."""
