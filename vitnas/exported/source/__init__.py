"""One network as a file of PyTorch: `model_source(config, ...)` writes it, without running it.

`plan` chooses the parts and their values, `merging` lets attentions share a class, `folding` puts
what never differs into the classes, `layout` prints the objects, `templates` hold the text of each
part, and `expressed` says which fields of a network they know.
"""
