"""Models for use: trained on all films, kept in files, calibrated, and silent where they know nothing."""
