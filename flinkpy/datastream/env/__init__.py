"""The parts of the environment: the recorded program's options, its sources, and its submission."""
