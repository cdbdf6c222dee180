"""A sealed store on its way: packed, pushed, pulled, in part or whole, and the card that goes with it."""
