"""Who may do what: users, accounts, tokens, sessions, and the audit log."""
