"""Reading images: one file for each kind of data set, all listed in `table`.

Only formats that cannot hold code are read: idx, CIFAR's binary version and image files. CIFAR's
Python version is a pickle and is not read.
"""
