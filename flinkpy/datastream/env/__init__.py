"""What the environment is made of: the recorded program, its options, its sources, its submission."""
