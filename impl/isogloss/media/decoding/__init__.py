"""Decoding in processes that may die of it.

`pool` keeps a few of them; `worker` is one, told by a descriptor which file to read. A medium takes two questions: what
it is, upon which this side asks the model's processor what it wants (`wishes`), and then for that. `pictures`, `films`
and `sound` run in the worker alone.
"""
