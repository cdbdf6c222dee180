"""Save, calibrate and apply models trained on all movies; flag clips unlike the training clips."""
