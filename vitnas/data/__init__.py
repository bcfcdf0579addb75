"""Reading the images of every data set; a kind of data set is one file, and `table` knows them all.

Only formats without code in them: idx, CIFAR's binary version and image files. CIFAR's Python
version is a pickle and is not read.
"""
