"""Looking into checkpoints from outside a job, without the program that wrote them."""
