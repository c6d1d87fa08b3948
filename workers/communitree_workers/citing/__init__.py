"""What a text rests on: references read by one grammar, statements compared with what is said to state them.

Shared by reports, answers and the import, like `tables` and `text`; pure.
"""
