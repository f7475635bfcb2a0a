"""A gallery searched by several processes of a cluster: each scans a range of its rows, and one joins what they found.

span    a range of the rows of one version, and how a gallery is cut into such
holder  the rows of a span, as the process that scans them has them
fleet   these processes as actors of Ray: placed, asked, and asked again where one was lost
rows    the whole, for a retriever
"""
