"""Saliency maps: Grad-CAM of networks, and where on people it looks (Wolfe et al., FAccT 2023)."""
