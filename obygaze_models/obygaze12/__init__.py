"""Reproduce Tores et al., CVPR 2024: folds, tables, figures and printed numbers."""
