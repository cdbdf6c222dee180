"""What is the paper's alone: the folds, tables, figures and printed numbers of Tores et al., CVPR 2024."""
