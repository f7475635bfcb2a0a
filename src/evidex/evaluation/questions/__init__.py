"""What people see who ask an archive in their own words: do the first hits fit, and is the verdict right?"""
