"""Pictures, films and sound that a request names: got safely, decoded safely, in the sizes a model wants.

    from isogloss.media.api import Inline, MediaBudget, MediaError, MediaRules, Reference
    from isogloss.media.loader import MediaLoader
    from isogloss.media.policy import MediaPolicy, parse_hosts

    policy = MediaPolicy(allowed_hosts=parse_hosts(text), folder=path)       # ValueError for what cannot be
    loader = MediaLoader(policy)                                             # starts nothing
    rules = MediaRules("image", max_bytes, {"jpeg": "image/jpeg", …}, bare={"jpeg": "/9j/"})
    budget = MediaBudget(total_bytes)                                        # one a request, if it has a total
    media = await loader.load(Reference(text), rules, engine.processor, budget)
    loader.close()

`load` raises MediaError, whose `reason` is one of a closed list, or what the processor raises (MediaRefused).
Cancelling it drops the download or the decoding. `api` names no decoder and can be imported without them.

From the text of a request to pixels: `source` tells the spellings apart; `inline`, `files` and `fetching` (over
`address`, `hosts`, `network`) put the bytes into a `spool`; `sniffing` says what they are; `decoding` hands them to a
process that may die of them.
"""
