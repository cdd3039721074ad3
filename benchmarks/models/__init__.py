"""The models of Table 1, described once and written for every framework that is compared."""
