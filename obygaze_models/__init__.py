"""The zoo: small CPU-only models trained straight from feature stores, and their honest evaluation."""
