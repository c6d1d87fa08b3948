"""Questions. Its rooms in the order of their imports, from below:

wording, view, question, selection, batches, builtin, planning, map, points, answer, reduce.
"""
