"""What is measured: one file for each kind of program, the same program for every frontend."""
