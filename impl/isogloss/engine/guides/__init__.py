"""Guided decoding: from a guide in a request to the tokens that may come next.

A guide is tried in a process that can be killed (`worker`, `trial`) before it is compiled in this one (`compiler`);
each choice then follows it with a matcher of its own (`matcher`).
"""
