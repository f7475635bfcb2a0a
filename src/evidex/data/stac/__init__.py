"""STAC catalogs: from a document, here or on another machine, to the files that are to be indexed."""
