"""What can be read off a step: contact points, forces and distances."""
