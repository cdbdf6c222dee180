"""What passes between stores, and between a store and other formats: grow, merge, compare, import, export."""
