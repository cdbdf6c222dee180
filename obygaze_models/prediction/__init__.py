"""Apply models trained on all movies: kept in files, calibrated, silent on clips unlike those trained on."""
