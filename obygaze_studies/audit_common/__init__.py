"""Share tables, figures and reports between the bias audits; no audit generates anything."""
