"""Saliency maps: Grad-CAM of networks, and measures of the maps in regions (Wolfe et al., FAccT 2023)."""
