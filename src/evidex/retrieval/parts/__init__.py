"""A gallery that lies on several machines: each scans its part, and one joins what they found.

wire    what travels: vectors there, the best rows and the evidence of all back
part    another server that holds a part
joined  the rows of this machine's gallery and of all parts, for a retriever
"""
