"""What a scene is made of: the builder, the model it builds, the state of a world, and its controls."""
