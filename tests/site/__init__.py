"""The site that `make docs` builds, and the pages it is made of."""
