"""Contact: material parameters and their combination, the traction law, and its evaluation on surface samples."""
